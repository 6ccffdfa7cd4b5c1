"""Operations along dimensions."""
