"""All of Placement's contents, from the reference's database to ours and back.

Either side gives its contents as whole records in names and UUIDs, since ids mean nothing elsewhere
(`records`): `reference_contents` reads the reference's tables, `our_contents` ours. `reference_writing` and
`our_writing` take such records in. `reference_checks` and `our_checks` say before what can't go over,
`comparison` afterwards whether both sides have the same. `moving` is what an operator asks for.
"""
