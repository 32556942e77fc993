"""tacit"""
