"""Programs as people write them, run under either engine: ``python tests/usual`` prints what each prints, as JSON."""
