"""Operations that change shapes and make views."""
