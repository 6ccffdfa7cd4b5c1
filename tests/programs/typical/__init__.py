"""Programs as people write them, run under either engine: ``python tests/programs/typical`` prints what each prints, as JSON."""
