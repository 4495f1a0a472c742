"""A masked search of long vectors, bit by bit, without I/O.

formats    the numbers of an array as whole numbers that sort alike
layout     an update as one long vector, in chunks
search     which bits are asked for, and what follows from the totals
lanes      many small numbers as bytes, behind masks, added up
chunk      one client's part in the search of a chunk
tampering  how a sum that somebody altered on its way is noticed, and where
"""
