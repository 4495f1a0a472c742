"""Who is who: one's own key, and the certificates of all.

    keys           one's own key: made, kept, shown to others
    certificates   what one says, and whether it is the participant's that the charter names

Whom a charter names, they tell.
"""
