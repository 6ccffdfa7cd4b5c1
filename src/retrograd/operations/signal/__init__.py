"""Operations of signals: Fourier transforms and windows."""
