"""Operations that read and write by index, and sort."""
