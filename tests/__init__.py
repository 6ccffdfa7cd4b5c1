"""The tests of retrograd, in folders by kind; README.md describes each."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
