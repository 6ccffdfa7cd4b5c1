"""Operations of linear algebra."""
