"""Views and shapes: reshaping, permuting, selecting, splitting; and the operations that copy to reshape."""
