"""A Flower app: digits told apart by ten clients, three of them poisoned."""
