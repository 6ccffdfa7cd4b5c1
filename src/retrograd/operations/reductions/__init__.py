"""Operations along dimensions: sums, means, norms, maxima, medians, cumulative sums, quantiles and histograms."""
