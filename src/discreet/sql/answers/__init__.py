"""Stored sums become an answer: post-processing, confidence intervals, notes, exports, pages and charts."""
