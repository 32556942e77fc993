SELECT balance / 20 * 20, COUNT(*) FROM data GROUP BY 1
-- expect: refused: write FLOOR(balance / 20) * 20: without FLOOR engines do not agree on it.
