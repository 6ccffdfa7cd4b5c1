"""Operations on shapes: views, joining and splitting, padding, and rearranging elements."""
