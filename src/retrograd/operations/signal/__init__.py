"""Operations on signals: discrete Fourier transforms (``torch.fft``), ``stft``, ``istft`` and window functions."""
