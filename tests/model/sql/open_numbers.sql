SELECT COUNT(*) FROM data WHERE pay > 1000
-- expect: refused: the bins of pay are half-open, so a bin may start but never end with 1000: ask pay < 1000 or pay >= 1000.
