"""From a question to a release that is paid for: price, charge, run once, store, certify."""
