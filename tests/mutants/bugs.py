"""Bugs that the tests must catch: `make mutants` plants each by itself and runs its tests.

A bug is one place in one file, and what it becomes. It should be one that somebody could make: a comparison off by one,
a factor left out, a check that checks nothing. When the code changes, change the bug with it (`test_bugs.py` says which
lines are gone); when a bug has got away, write the test first and then put the bug here.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "src/midst"


@dataclass(frozen=True)
class Bug:
    """A bug to be planted.

    Attributes:
        name: what is wrong with it.
        file: under `SOURCE`.
        old: what stands there, once.
        new: what is put in its place.
        tests: what pytest is given; one of these tests must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


_CONTRACT = "tests/engines/test_contract.py::"
_SEARCHING = "tests/engines/test_searching.py::"
_GOSSIP = "tests/net/test_gossip.py::"
_FILES = "tests/test_files.py::"
_JOURNAL = "tests/net/test_journal.py::"
_PEER = "tests/net/test_peer.py::"
_TIDE = "tests/net/test_maxima.py::"
_WIRE = "tests/net/test_wire.py::"
_ATTACK = "tests/privacy/test_attack.py::"
_TOGETHER = "tests/privacy/test_together.py::"
_AUDIT = "tests/privacy/test_audit.py::"
_DP = "tests/dp/test_dp.py::"
_ESTIMATE = "tests/studies/test_estimate.py::"
_LEDGER = "tests/dp/test_ledger.py::"
_SESSIONS = "tests/dp/test_sessions.py::"
_POSTERIOR = "tests/privacy/test_posterior.py::"
_SEALS = "tests/net/test_seal.py::"
_STRANGERS = "tests/net/test_strangers.py::"
_SEALED = "tests/privacy/test_sealed.py::"
_SEARCHED = "tests/privacy/test_search_beliefs.py::"
_MASKS = "tests/protocol/test_masks.py::"
_NUMBER_KEYS = "tests/protocol/test_number_keys.py::"
_PARTICIPANT = "tests/protocol/test_participant.py::"
_SEARCH = "tests/protocol/test_search.py::"
_VECTORS = "tests/protocol/test_vectors.py::"
_CERTIFICATE = "tests/test_certificate.py::"
_EXPORTED_MEMBERS = "tests/test_exported_members.py::"
_GRAPHS = "tests/test_graphs.py::"
_NODE = "tests/protocol/test_node.py::"
_SEARCH_METHOD = "tests/test_search_method.py::"
_BEHAVING = "tests/simnet/test_states.py::test_with_a_liar_that_behaves_every_state_leads_to_the_right_answer"
_LYING = "tests/simnet/test_states.py::test_with_any_liar_nobody_is_led_apart_or_left_waiting"
_ONE_VOTE = "tests/simnet/test_states.py::test_with_verified_votes_a_liar_has_one_vote"
_SOLVING = "tests/test_solving.py::"
_UPDATE = "tests/protocol/test_step.py::"

_STEP = [
    Bug(
        "one number at the interval's lower end is outside",
        "protocol/step.py",
        "int(low > terms.s)",
        "int(low >= terms.s)",
        (_UPDATE + "test_ends_of_the_interval_are_inside",),
    ),
    Bug(
        "one number at the interval's upper end is outside",
        "protocol/step.py",
        "int(high < terms.s)",
        "int(high <= terms.s)",
        (_UPDATE + "test_ends_of_the_interval_are_inside",),
    ),
    Bug(
        "many numbers at the interval's lower end are outside",
        "protocol/step.py",
        "xp.greater(low",
        "xp.greater_equal(low",
        (_UPDATE + "test_ends_of_the_interval_are_inside",),
    ),
    Bug(
        "many numbers at the interval's upper end are outside",
        "protocol/step.py",
        "xp.less(high",
        "xp.less_equal(high",
        (_UPDATE + "test_ends_of_the_interval_are_inside",),
    ),
    Bug(
        "z and its mirror are exchanged",
        "protocol/step.py",
        "(1.0 - theta) * z + theta * (mirror",
        "(1.0 - theta) * mirror + theta * (z",
        (_UPDATE + "test_node_form_is_the_edge_form_summed",),
    ),
    Bug(
        "the degree is left out of the mirrors' sum",
        "protocol/step.py",
        "step * cd * x",
        "step * c * x",
        (_UPDATE + "test_node_form_is_the_edge_form_summed",),
    ),
    Bug(
        "the sign of an edge is the other end's",
        "protocol/node.py",
        "1 if j > self.id",
        "1 if j < self.id",
        (_CONTRACT + "test_every_engine_runs_algorithm_1",),
    ),
    Bug(
        "the mirror is updated with the wrong sign",
        "protocol/node.py",
        "next_z(far, near, A, x, c, theta)",
        "next_z(far, near, -A, x, c, theta)",
        (_CONTRACT + "test_every_engine_runs_algorithm_1",),
    ),
    Bug(
        "an old message is taken for a new one",
        "protocol/node.py",
        "message.round != state.round",
        "message.round > state.round",
        (_NODE + "test_a_message_of_another_round_is_refused",),
    ),
    Bug(
        "one finite coordinate is enough",
        "protocol/node.py",
        "np.isfinite(number).all()",
        "np.isfinite(number).any()",
        (_NODE + "test_a_vector_needs_all_of_its_coordinates",),
    ),
    Bug(
        "a number of any shape is z(0)",
        "protocol/node.py",
        "if len(z) != len(self.neighbours)",
        "if len(z) < len(self.neighbours)",
        (_NODE + "test_bad_start",),
    ),
]

_SURFACES = [
    Bug(
        "a public name is missing",
        "__init__.pyi",
        "from midst.methods import Exact as Exact\n",
        "",
        (_EXPORTED_MEMBERS + "test_public_names",),
    ),
]

_KEYS_AND_MASKS = [
    Bug(
        "minus zero has a key of its own",
        "protocol/keys.py",
        'struct.pack("<d", value + 0.0)',
        'struct.pack("<d", value)',
        (_NUMBER_KEYS + "test_a_float_is_its_key",),
    ),
    Bug(
        "many minus zeros have a key of their own",
        "protocol/keys.py",
        "(values + 0.0).view",
        "values.view",
        (_NUMBER_KEYS + "test_keys_of_many_floats_are_those_of_each",),
    ),
    Bug(
        "half a step is rounded as its float is",
        "protocol/keys.py",
        "- 0.5) > 1e-3)",
        "- 0.5) >= 0.0)",
        (_NUMBER_KEYS + "test_grid_rounds_the_exact_quotient_half_to_even",),
    ),
    Bug(
        "a multiple is rounded twice",
        "protocol/keys.py",
        "_EXACT // number",
        "_EXACT * number",
        (_NUMBER_KEYS + "test_grid_rounds_the_exact_quotient_half_to_even",),
    ),
    Bug(
        "what is no number has a key",
        "protocol/keys.py",
        "if isfinite(value) else None",
        "",
        (_NUMBER_KEYS + "test_share_of_a_bracket_of_floats_is_by_value",),
    ),
    Bug(
        "the lower bound is outside its bracket",
        "protocol/keys.py",
        "keys.key(low) - 1",
        "keys.key(low)",
        (_NUMBER_KEYS + "test_share_of_a_bracket_of_floats_is_by_value",),
    ),
    Bug(
        "two keys may add up past the modulus",
        "protocol/keys.py",
        "b - SIGN <= _FARTHEST",
        "b - SIGN <= 4 * _FARTHEST",
        (_NUMBER_KEYS + "test_two_keys_of_any_bracket_add_up_below_the_modulus",),
    ),
    Bug(
        "a key of one share",
        "protocol/masks.py",
        "info=_LABEL + lower + higher",
        "info=_LABEL + lower",
        (_MASKS + "test_pair_key_tells_apart_all_that_pairs_are_told_apart_by",),
    ),
    Bug(
        "a key of the other share",
        "protocol/masks.py",
        "info=_LABEL + lower + higher",
        "info=_LABEL + higher",
        (_MASKS + "test_pair_key_tells_apart_all_that_pairs_are_told_apart_by",),
    ),
    Bug(
        "a key of any charter",
        "protocol/masks.py",
        "salt=charter",
        "salt=None",
        (_MASKS + "test_pair_key_tells_apart_all_that_pairs_are_told_apart_by",),
    ),
    Bug(
        "a key that is used for something else too",
        "protocol/masks.py",
        "key=key, person=_PERSON",
        "key=key",
        (_VECTORS + "test_masks_are_those_that_are_written_down",),
    ),
    Bug(
        "every eight masks are the same",
        "protocol/masks.py",
        'context + struct.pack("<I", k)',
        "context",
        (_MASKS + "test_those_who_were_told_different_things_do_not_cancel",),
    ),
    Bug(
        "the same masks in every step",
        "protocol/masks.py",
        "hashlib.blake2b(context + struct",
        "hashlib.blake2b(struct",
        (_MASKS + "test_those_who_were_told_different_things_do_not_cancel",),
    ),
    Bug(
        "the higher number adds",
        "protocol/masks.py",
        "1 if number < other",
        "1 if number > other",
        (_MASKS + "test_coalition_sees_the_honest_total_and_nothing_of_who_has_what",),
    ),
    Bug(
        "masks that do not cancel",
        "protocol/masks.py",
        "1 if number < other else -1",
        "1",
        (_MASKS + "test_contributions_add_up_to_the_plain_total",),
    ),
    Bug(
        "hidden numbers are not reduced",
        "protocol/masks.py",
        "each % MODULUS for each",
        "each for each",
        (_MASKS + "test_contributions_add_up_to_the_plain_total",),
    ),
]

_SEARCHES = [
    Bug(
        "a value at a threshold is above it",
        "protocol/search.py",
        "[bisect_right(keys, edge)",
        "[bisect_left(keys, edge)",
        (_SEARCH + "test_answer_is_the_one_of_the_sorted_values",),
    ),
    Bug(
        "a value without weight is summed",
        "protocol/search.py",
        " if weight else 0]",
        "]",
        (_SEARCH + "test_answer_is_the_one_of_the_sorted_values",),
    ),
    Bug(
        "totals that are too many are taken",
        "protocol/search.py",
        "if len(totals) != sum(",
        "if len(totals) < sum(",
        (_SEARCH + "test_wrong_number_of_totals_is_impossible",),
    ),
    Bug(
        "weight may be lost in a bracket",
        "protocol/search.py",
        "if sum(totals) != inside",
        "if sum(totals) > inside",
        (_SEARCH + "test_cells_must_add_up_to_their_bracket",),
    ),
    Bug(
        "weight may appear in a bracket",
        "protocol/search.py",
        "if sum(totals) != inside",
        "if sum(totals) < inside",
        (_SEARCH + "test_cells_must_add_up_to_their_bracket",),
    ),
    Bug(
        "a sum may lie below its bracket",
        "protocol/search.py",
        "if not least <= total <= most",
        "if not total <= most",
        (_SEARCH + "test_a_sum_outside_its_bracket_is_no_answer",),
    ),
    Bug(
        "a sum may lie above its bracket",
        "protocol/search.py",
        "if not least <= total <= most",
        "if not least <= total",
        (_SEARCH + "test_a_sum_outside_its_bracket_is_no_answer",),
    ),
    Bug(
        "a bracket of two values is summed for one",
        "protocol/search.py",
        "held != self._open_values(goal) * self.rules.unit",
        "held > 2 * self.rules.unit",
        (_SEARCH + "test_answer_is_the_one_of_the_sorted_values",),
    ),
    Bug(
        "the larger half of an odd number is no half",
        "protocol/search.py",
        "2 * new.inside <= old.inside + 1",
        "2 * new.inside <= old.inside",
        (_VECTORS + "test_search_takes_the_course_that_is_written_down",),
    ),
    Bug(
        "ties are asked about without end",
        "protocol/search.py",
        "elif track.tied and track.tie_probes < TIE_PROBES:",
        "elif track.tied:",
        (_SEARCHING + "test_search_of_values_is_that_of_their_participants",),
    ),
    Bug(
        "ties are never asked about",
        "protocol/search.py",
        "tied=new.inside == old.inside",
        "tied=False",
        (_VECTORS + "test_search_takes_the_course_that_is_written_down",),
    ),
    Bug(
        "the opening counts as a probe that did not halve",
        "protocol/search.py",
        "if new == old or opened:",
        "if new == old:",
        (_SEARCH + "test_opening_says_where_to_look_first_and_nothing_about_the_way",),
    ),
    Bug(
        "a rank is expected half a place too high",
        "protocol/search.py",
        "(rank - 0.5) / inside",
        "rank / inside",
        (_SEARCH + "test_public_quantiles_place_the_first_thresholds",),
    ),
    Bug(
        "the proof of a midpoint counts what is between",
        "protocol/search.py",
        "return brackets[0].below,",
        "return brackets[-1].below,",
        (_SEARCH + "test_proof_counts_what_lies_below_and_above",),
    ),
    Bug(
        "a float a little above its decimal is not round",
        "protocol/search.py",
        "((first - 1) * ten, first * ten)",
        "(first * ten,)",
        (_SEARCH + "test_roundest_by_hand",),
    ),
    Bug(
        "the promise of how many probes is one too low",
        "protocol/search.py",
        "TIE_PROBES + others + 2",
        "TIE_PROBES + others + 1",
        (_SEARCH + "test_most_probes_is_what_the_specification_says",),
    ),
]

_PARTICIPANTS = [
    Bug(
        "the same content signed again is a lie",
        "protocol/participant.py",
        "known.body == statement.body",
        "known == statement",
        (_PARTICIPANT + "test_two_contents_by_one_signer_are_evidence",),
    ),
    Bug(
        "what is not due yet is held",
        "protocol/participant.py",
        "step > self.step + 1 or",
        "step > self.step + 9 or",
        (_PARTICIPANT + "test_what_is_not_due_yet_is_left_to_be_asked_for",),
    ),
    Bug(
        "any signature will do",
        "protocol/participant.py",
        "if not verifier(signed_bytes(self._agreement.digest, statement.body), statement.signature)",
        "if not statement.signature",
        (_PARTICIPANT + "test_a_wrong_signature_is_refused_and_nobody_is_blamed",),
    ),
    Bug(
        "any certificate will do",
        "protocol/participant.py",
        "            verifier = self._notary.verifier(signer, certificate)",
        "            verifier = self._notary.verifier(signer, certificate) or (lambda data, signature: True)",
        (_PARTICIPANT + "test_another_certificate_is_refused",),
    ),
    Bug(
        "two statements of one signer are no evidence",
        "protocol/participant.py",
        "        if known is not None:\n            raise",
        "        if False:\n            raise",
        (_PARTICIPANT + "test_what_is_long_past_is_no_news_and_another_one_is_evidence",),
    ),
    Bug(
        "an own statement that is not known is taken",
        "protocol/participant.py",
        "        if own:\n            text",
        "        if False:\n            text",
        (_PARTICIPANT + "test_an_own_statement_that_is_not_known_is_a_lost_journal",),
    ),
    Bug(
        "a longer contribution is taken",
        "protocol/course.py",
        "len(statement.content) != 8 * self.numbers",
        "len(statement.content) < 8 * self.numbers",
        (_PARTICIPANT + "test_another_number_of_numbers_names_its_signer",),
    ),
    Bug(
        "a shorter contribution is taken",
        "protocol/course.py",
        "len(statement.content) != 8 * self.numbers",
        "len(statement.content) > 8 * self.numbers",
        (_PARTICIPANT + "test_another_number_of_numbers_names_its_signer",),
    ),
    Bug(
        "statements of other contexts are added up",
        "protocol/participant.py",
        "(self.course is None or statement.context == self.course.context)",
        "True",
        (_PARTICIPANT + "test_those_who_were_told_different_things_do_not_add_up",),
    ),
    Bug(
        "whose value is all of a total is told that somebody lied",
        "protocol/participant.py",
        "any(own > total for",
        "any(own >= total for",
        (_PARTICIPANT + "test_everybody_finds_what_is_right",),
    ),
    Bug(
        "a signature is good for every charter",
        "protocol/statements.py",
        "return SIGNATURE_LABEL + digest + body",
        "return SIGNATURE_LABEL + body",
        (_PARTICIPANT + "test_a_statement_of_another_session_is_refused",),
    ),
    Bug(
        "the context forgets what was agreed",
        "protocol/statements.py",
        "hashlib.sha256(transcript + asked)",
        "hashlib.sha256(asked)",
        (_PARTICIPANT + "test_hashes_are_of_all_that_was_agreed",),
    ),
    Bug(
        "the context forgets what is asked",
        "protocol/statements.py",
        "hashlib.sha256(transcript + asked)",
        "hashlib.sha256(transcript)",
        (_PARTICIPANT + "test_hashes_are_of_all_that_was_agreed",),
    ),
    Bug(
        "the transcript forgets where the search opened",
        "protocol/statements.py",
        'b"".join(tags) + opening',
        'b"".join(tags)',
        (_PARTICIPANT + "test_hashes_are_of_all_that_was_agreed",),
    ),
    Bug(
        "the transcript forgets totals",
        "protocol/statements.py",
        'hashlib.sha256(context + struct.pack(f"<{len(totals)}Q", *totals) + sealed)',
        "hashlib.sha256(context + sealed)",
        (_PARTICIPANT + "test_hashes_are_of_all_that_was_agreed",),
    ),
    Bug(
        "who may have one value may have none or many",
        "protocol/statements.py",
        "count >= 1 if self.pooled else count == 1",
        "count >= 1 or not self.pooled",
        (_PARTICIPANT + "test_a_number_of_values_against_the_charter_names_its_signer",),
    ),
    Bug(
        "numbers in a certificate are not checked",
        "protocol/course.py",
        "if not all(0 <= each < MODULUS for each in numbers):",
        "if not numbers:",
        (_PARTICIPANT + "test_a_certificate_with_anything_changed_is_refused",),
    ),
    Bug(
        "a certificate may end early",
        "protocol/course.py",
        "    if course.question is not None:\n        raise Malformed",
        "    if False:\n        raise Malformed",
        (_PARTICIPANT + "test_what_all_have_signed_must_be_a_search_from_its_beginning_to_its_end",),
    ),
    Bug(
        "a certificate may go on",
        "protocol/course.py",
        'if courses[-1].question is None:\n                raise Malformed("it goes on after the answer was known")',
        "if courses[-1].question is None:\n                break",
        (_PARTICIPANT + "test_what_all_have_signed_must_be_a_search_from_its_beginning_to_its_end",),
    ),
    Bug(
        "a certificate without signatures",
        "protocol/course.py",
        "if not check(signed_bytes(agreement.digest, said), signature):",
        "if not signature:",
        (_PARTICIPANT + "test_certificates_of_others_are_refused",),
    ),
    Bug(
        "the final hash forgets the answers",
        "protocol/statements.py",
        'hashlib.sha256(transcript + b"answers" + raw)',
        'hashlib.sha256(transcript + b"answers")',
        (_PARTICIPANT + "test_hashes_are_of_all_that_was_agreed",),
    ),
    Bug(
        "the final signature is of any step",
        "protocol/course.py",
        "number, course.step, course.context)",
        "number, course.step - 1, course.context)",
        (_PARTICIPANT + "test_a_true_certificate_is_accepted",),
    ),
]

_CERTIFICATES = [
    Bug(
        "no rounding room in the residual bounds",
        "protocol/certificate.py",
        " + ROUNDING * moved)",
        ")",
        (_CERTIFICATE + "test_residual_bounds_are_bounds",),
    ),
    Bug(
        "no rounding room for the node's own x",
        "protocol/certificate.py",
        " + weight / len(z) * np.abs(x)",
        "",
        (_CERTIFICATE + "test_residual_bounds_make_up_for_the_rounding_of_x",),
    ),
    Bug(
        "no rounding room in whether x are close",
        "protocol/certificate.py",
        "tolerance + ROUNDING * np.maximum(np.abs(low), np.abs(high))",
        "tolerance",
        (_CERTIFICATE + "test_as_far_apart_as_the_tolerance_is_close_but_for_rounding",),
    ),
    Bug(
        "all of the slack is used up",
        "protocol/certificate.py",
        "(1 - tau) * total - needed[1]) + 1",
        "(1 - tau) * total - needed[1]) + 2",
        (_TIDE + "test_the_slack_of_a_median_is_half_of_one_or_two",),
    ),
    Bug(
        "weight needed below is rounded down",
        "protocol/certificate.py",
        "int(-(-tau * total // 1))",
        "int(tau * total // 1)",
        (_CERTIFICATE + "test_proof_holds_for_any_x",),
    ),
    Bug(
        "weight needed above is rounded down",
        "protocol/certificate.py",
        "int(-(-(1 - tau) * total // 1))",
        "int((1 - tau) * total // 1)",
        (_CERTIFICATE + "test_proof_holds_for_any_x",),
    ),
    Bug(
        "who sends its value is on neither side",
        "protocol/certificate.py",
        "self._whole_weights @ (self._s <= x)",
        "self._whole_weights @ (self._s < x)",
        (_CERTIFICATE + "test_what_is_needed_is_just_enough",),
    ),
    Bug(
        "just enough weight is not enough",
        "protocol/certificate.py",
        "(below >= self._needed_below)",
        "(below > self._needed_below)",
        (_CERTIFICATE + "test_what_is_needed_is_just_enough",),
    ),
    Bug(
        "one side proves a quantile",
        "protocol/certificate.py",
        "(below >= self._needed_below).all() and (above",
        "(below >= self._needed_below).all() or (above",
        (_CERTIFICATE + "test_proof_holds_for_any_x",),
    ),
    Bug(
        "a mean is proved by the spread alone",
        "protocol/certificate.py",
        "(spread + np.abs(self._weights @ (x - self._s)) <= self._tolerance)",
        "(spread <= self._tolerance)",
        (_CERTIFICATE + "test_certified_is_right",),
    ),
    Bug(
        "x is sampled an iteration late",
        "protocol/certificate.py",
        "(t + 1) % (diameter + 1) == 0",
        "t % (diameter + 1) == 0",
        (_SEARCH_METHOD + "test_when_samples_are_taken",),
    ),
    Bug(
        "samples are known before they can be",
        "protocol/certificate.py",
        "return sampled + diameter",
        "return sampled + diameter - 1",
        (_SEARCH_METHOD + "test_when_samples_are_taken",),
    ),
]

_JOURNALS = [
    Bug(
        "no fdatasync",
        "net/journal.py",
        "        os.fdatasync(self._handle)\n",
        "",
        (_JOURNAL + "test_what_has_returned_survives_a_power_cut",),
    ),
    Bug(
        "the mark before the sync",
        "net/journal.py",
        "        os.fdatasync(self._handle)\n        _write_all(self._handle, mark)\n",
        "        _write_all(self._handle, mark)\n        os.fdatasync(self._handle)\n",
        (_JOURNAL + "test_what_is_read_again_is_on_disk_before_anything_is_made_of_it",),
    ),
    Bug(
        "no fsync of the folder after a move",
        "net/journal.py",
        "        self._handle = handle\n        os.fsync(self._folder)\n",
        "        self._handle = handle\n",
        (_JOURNAL + "test_what_has_returned_survives_a_power_cut",),
    ),
    Bug(
        "no fsync before a move",
        "net/journal.py",
        "            os.fsync(handle)\n",
        "",
        (_JOURNAL + "test_what_has_returned_survives_a_power_cut",),
    ),
    Bug(
        "no fsync of a new folder",
        "files.py",
        "        _sync_folder(folder.parent)\n",
        "        pass\n",
        (_JOURNAL + "test_a_new_folder_survives_a_power_cut",),
    ),
    Bug(
        "no fsync of the folders that lead to a new one",
        "files.py",
        "for folder in (path, *path.parents) if",
        "for folder in (path,) if",
        (_JOURNAL + "test_a_new_folder_survives_a_power_cut",),
    ),
    Bug(
        "no fsync of a file that is written whole",
        "files.py",
        "            os.fsync(file.fileno())\n",
        "",
        (_FILES + "test_what_was_written_survives_a_power_cut",),
    ),
    Bug(
        "a file is synced before all of it is written",
        "files.py",
        "            file.flush()\n",
        "",
        (_FILES + "test_what_was_written_survives_a_power_cut",),
    ),
    Bug(
        "no fsync of the folder of a file that is written whole",
        "files.py",
        "    _sync_folder(target.parent)\n",
        "",
        (_FILES + "test_what_was_written_survives_a_power_cut",),
    ),
    Bug(
        "a checksum does not cover what was before",
        "net/journal.py",
        'blake2b(b"".join(parts), digest_size',
        "blake2b(parts[-1], digest_size",
        (_JOURNAL + "test_records_in_another_order_or_left_out_are_refused",),
    ),
    Bug(
        "a checksum of a head is not looked at",
        "net/journal.py",
        'if len(data) < start or data[middle:start] != _sum(b"head", before, data[place:middle]):',
        "if len(data) < start:",
        (_JOURNAL + "test_damage_anywhere_is_refused",),
    ),
    Bug(
        "a checksum is not looked at",
        "net/journal.py",
        'return (record, checksum) if _sum(b"record", before, record) == checksum else None',
        "return record, checksum",
        (_JOURNAL + "test_damage_anywhere_is_refused",),
    ),
    Bug(
        "a mark is not looked for",
        "net/journal.py",
        "marked = data.rfind(mark)  #",
        "marked = -1  #",
        (_JOURNAL + "test_damage_anywhere_is_refused",),
    ),
    Bug(
        "the first mark is taken for the last",
        "net/journal.py",
        "marked = data.rfind(mark)  #",
        "marked = data.find(mark)  #",
        (_JOURNAL + "test_a_long_journal_with_one_bit_turned_in_its_first_length",),
    ),
    Bug(
        "a mark may be damaged",
        "net/journal.py",
        "        if end < marked and data[end:place] != mark:\n            break\n",
        "",
        (_JOURNAL + "test_damage_anywhere_is_refused",),
    ),
    Bug(
        "the mark is known to all",
        "net/journal.py",
        'return _sum(b"mark", first)',
        'return _sum(b"mark")',
        (_JOURNAL + "test_every_journal_has_a_mark_of_its_own",),
    ),
    Bug(
        "a first record cut short is no record",
        "net/journal.py",
        "if not records or end < marked:",
        "if records and end < marked:",
        (_JOURNAL + "test_a_first_record_is_whole_or_not_at_all",),
    ),
    Bug(
        "a record cut short stays",
        "net/journal.py",
        "            file.replace(data[:end] + self._mark)",
        "            pass",
        (_JOURNAL + "test_a_write_cut_short_loses_that_record_and_no_other",),
    ),
    Bug(
        "a record that may not be on disk is taken as it is",
        "net/journal.py",
        "        if data[end:] != self._mark:",
        "        if len(data) - end > len(self._mark):",
        (_JOURNAL + "test_what_is_read_again_is_on_disk_before_anything_is_made_of_it",),
    ),
    Bug(
        "behind a failed write another",
        "net/journal.py",
        "        self._failed = True\n        framed = _frame(record, self._last)",
        "        framed = _frame(record, self._last)",
        (_JOURNAL + "test_behind_a_write_that_has_failed_nothing_is_written",),
    ),
    Bug(
        "a short write is a whole one",
        "net/journal.py",
        "rest = rest[os.write(handle, rest) :]",
        "rest = rest[os.write(handle, rest) * 0 + len(rest) :]",
        (_JOURNAL + "test_writes_that_end_early_go_on",),
    ),
    Bug(
        "secrets stay in a file that was not moved",
        "net/journal.py",
        "                os.unlink(fresh)\n",
        "                pass\n",
        (_JOURNAL + "test_a_file_that_cannot_be_replaced_stays_and_leaves_nothing_behind",),
    ),
    Bug(
        "an empty journal is a new one",
        "net/journal.py",
        "os.fstat(self._handle).st_size == 0:",
        "os.fstat(self._handle).st_size < 0:",
        (_JOURNAL + "test_an_empty_file_is_refused",),
    ),
    Bug(
        "two processes may write",
        "net/journal.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        (_JOURNAL + "test_a_real_file_is_for_its_owner_and_for_one_process",),
    ),
    Bug(
        "others may read a journal",
        "net/journal.py",
        "os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600",
        "os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644",
        (_JOURNAL + "test_a_real_file_is_for_its_owner_and_for_one_process",),
    ),
    Bug(
        "secrets stay when a session is over",
        "net/journal.py",
        "        self._begin(record)\n\n    def _begin",
        "        self.append(record)\n\n    def _begin",
        (_JOURNAL + "test_forgetting_leaves_one_record",),
    ),
]

_WIRES = [
    Bug(
        "a signature may be cut off",
        "net/wire.py",
        "if place > len(frame):",
        "if middle > len(frame):",
        (_WIRE + "test_statements_that_are_cut_off_are_refused",),
    ),
    Bug(
        "statements may be cut off",
        "net/wire.py",
        '            if place > len(frame):\n                raise BadFrame("statements that are cut off")\n',
        "",
        (_WIRE + "test_statements_that_are_cut_off_are_refused",),
    ),
    Bug(
        "talk may be of any length",
        "net/wire.py",
        "if len(frame) > CONTROL_BYTES:",
        "if not frame:",
        (_WIRE + "test_talk_is_no_longer_than_it_may_be",),
    ),
    Bug(
        "a step may be longer than it is",
        "net/wire.py",
        "if len(frame) != self.step_bytes:",
        "if len(frame) < self.step_bytes:",
        (_WIRE + "test_a_step_has_one_length",),
    ),
    Bug(
        "a frame of any session is taken",
        "net/wire.py",
        "if session != self._session:",
        "if not session:",
        (_WIRE + "test_statements_that_are_cut_off_are_refused",),
    ),
    Bug(
        "a number may be too large",
        "net/wire.py",
        "right = bool(low <= number <= high)",
        "right = bool(low <= number)",
        (_WIRE + "test_numbers_beyond_what_can_be_are_refused",),
    ),
    Bug(
        "one coordinate of a vector is checked",
        "net/wire.py",
        "(number <= high)).all()",
        "(number <= high)).any()",
        (_WIRE + "test_every_coordinate_is_checked",),
    ),
    Bug(
        "z(0) is checked as x are",
        "net/wire.py",
        "self._limits.z if round == 0 else self._limits.x",
        "self._limits.x",
        (_WIRE + "test_what_can_be_depends_on_the_round",),
    ),
    Bug(
        "levels need not be finite",
        "net/wire.py",
        "if not np.isfinite(maxima).all():",
        "if np.isinf(maxima).all():",
        (_WIRE + "test_numbers_beyond_what_can_be_are_refused",),
    ),
    Bug(
        "words may be on many lines",
        "net/wire.py",
        'c if c.isprintable() else " "',
        "c",
        (_WIRE + "test_words_from_elsewhere_are_made_fit_to_print",),
    ),
    Bug(
        "words may be too many",
        "net/wire.py",
        '"replace")[:most]',
        '"replace")',
        (_WIRE + "test_words_from_elsewhere_are_made_fit_to_print",),
    ),
    Bug(
        "a digest is good for every round",
        "net/wire.py",
        'session + struct.pack("<I", round)',
        "session",
        (_WIRE + "test_ends_of_an_edge_agree_on_all_that_a_digest_is_of",),
    ),
    Bug(
        "a digest is of one end",
        "net/wire.py",
        'b"".join(ends)',
        "ends[0]",
        (_WIRE + "test_ends_of_an_edge_agree_on_all_that_a_digest_is_of",),
    ),
    Bug(
        "words of a refusal are not checked",
        "net/peer.py",
        "{printable(text)}",
        "{text}",
        (_PEER + "test_words_of_others_are_fit_to_print",),
    ),
    Bug(
        "words for a kind of refusal are not checked",
        "net/peer.py",
        "({printable(kind, 32)})",
        "({kind})",
        (_PEER + "test_words_of_others_are_fit_to_print",),
    ),
    Bug(
        "words of a withdrawal are not checked",
        "net/peer.py",
        "{printable(left.text)}",
        "{left.text}",
        (_PEER + "test_words_of_others_are_fit_to_print",),
    ),
    Bug(
        "anybody withdraws for anybody",
        "net/withdrawal.py",
        "if check is None or not check(_LABEL + digest + signed.said, signed.signature):",
        "if check is None:",
        (_PEER + "test_nobody_can_withdraw_for_another",),
    ),
    Bug(
        "a withdrawal of another session counts",
        "net/withdrawal.py",
        "if check is None or not check(_LABEL + digest + signed.said, signed.signature):",
        "if check is None or not check(_LABEL + signed.said, signed.signature):",
        (
            _PEER + "test_nobody_can_withdraw_for_another",
            _PEER + "test_a_withdrawal_reaches_everybody_and_each_believes_it_of_its_signer",
        ),
    ),
    Bug(
        "a withdrawal ends everybody at once",
        "net/peer.py",
        "if self.exchange.round > left.last and",
        "if",
        (_PEER + "test_an_accusation_is_its_signers_word_and_ends_nobody_who_needs_nothing_more_from_it",),
    ),
    Bug(
        "who has withdrawn is gone at once",
        "net/peer.py",
        "longest = deadlines.linger if needed",
        "longest = 0.0 if needed",
        (_PEER + "test_who_has_withdrawn_still_tells_what_it_had_told",),
    ),
    Bug(
        "a certificate that comes late is none",
        "net/peer.py",
        "return self.ending.kind in _WAITING and search is not None and search.question is None",
        "return False",
        (_PEER + "test_a_certificate_beats_a_withdrawal",),
    ),
    Bug(
        "talk is progress",
        "net/peer.py",
        "        neighbour.heard = now\n",
        "        neighbour.heard = self._progress = now\n",
        (_PEER + "test_talk_is_no_progress",),
    ),
    Bug(
        "a pause is a withdrawal",
        "net/peer.py",
        'self.ending, self._lingered = Aborted("paused", self.setup.name, text), True',
        "self.stop()",
        (_PEER + "test_a_pause_is_waited_for_and_gone_on_from",),
    ),
]

_GOSSIPS = [
    Bug(
        "one's own is told to whoever asks first",
        "net/gossip.py",
        "if signer == self._setup.number and not self._begun:",
        "if signer < 0:",
        (_GOSSIP + "test_nobody_is_told_what_it_is_known_to_have",),
    ),
    Bug(
        "the search goes on before all have greeted",
        "net/gossip.py",
        "self._participant.ready() if self._begun else None",
        "self._participant.ready()",
        (_GOSSIP + "test_no_step_is_made_before_every_neighbour_has_welcomed",),
    ),
    Bug(
        "the highest-numbered neighbour tells",
        "net/gossip.py",
        "sorted(self._near[k])",
        "sorted(self._near[k], reverse=True)",
        (_GOSSIP + "test_a_statement_comes_to_each_by_one_neighbour_and_by_a_shortest_way",),
    ),
    Bug(
        "everybody is asked at once",
        "net/gossip.py",
        "if self._asked < step:",
        "if step < 0:",
        (_GOSSIP + "test_the_first_to_be_asked_is_who_should_have_told",),
    ),
    Bug(
        "nobody but one is ever asked",
        "net/gossip.py",
        "if self._asked < step:",
        "if step >= 0:",
        (_GOSSIP + "test_a_neighbour_that_tells_nothing_on_holds_up_nobody_who_has_another",),
    ),
    Bug(
        "those who heard else are shown nothing",
        "net/gossip.py",
        "if self._participant.apart:",
        "if self._asked < 0:",
        (_GOSSIP + "test_an_equivocator_is_named_by_everybody",),
    ),
    Bug(
        "what is known to be there is told again",
        "net/gossip.py",
        " if about not in self._has[j]]",
        "]",
        (_GOSSIP + "test_who_tells_us_is_not_told",),
    ),
    Bug(
        "who greets anew is not told again",
        "net/gossip.py",
        "self._has[j].clear()",
        "pass",
        (_GOSSIP + "test_who_greets_anew_is_told_what_it_had",),
    ),
    Bug(
        "news are not told on",
        "net/gossip.py",
        "                self._tell(statement)\n                news = True",
        "                news = True",
        (_GOSSIP + "test_news_are_told_on_to_those_who_hear_of_it_by_us",),
    ),
    Bug(
        "the last participant has no bit",
        "net/gossip.py",
        "for k in range(count) if bits",
        "for k in range(count - 1) if bits",
        (_GOSSIP + "test_sets_of_participants_as_bits",),
    ),
]

_AUDITS = [
    Bug(
        "the jackknife's factor",
        "privacy/audit.py",
        "(count - 1) / count * sum(",
        "1 / count * sum(",
        (_AUDIT + "test_the_jackknife_of_a_mean_is_its_standard_error",),
    ),
    Bug(
        "more likely than not is certain",
        "privacy/audit.py",
        "max(atoms, default=0.0) > 1 - _CERTAIN",
        "max(atoms, default=0.0) > 0.5",
        (_SEALED + "test_only_what_is_all_but_certain_is_exposed",),
    ),
    Bug(
        "half a cell of the resolution is certain",
        "privacy/audit.py",
        "width = resolution * (1 + _CERTAIN)",
        "width = resolution / 2",
        (_SEARCHED + "test_all_alike",),
    ),
    Bug(
        "an attack is said to achieve nothing",
        "privacy/audit.py",
        "bits[i] = belief.posterior.grid_bits(float(cells[i]))",
        "bits[i] = 0.0",
        (_ATTACK + "test_what_is_read_is_counted",),
    ),
    Bug(
        "what is sampled is said to be exact",
        "privacy/audit.py",
        '"sampled" if sampled else "exact"',
        '"exact"',
        (_SEALED + "test_larger_sets_are_sampled_with_an_error_bar_that_holds",),
    ),
    Bug(
        "bits of a search leave the floor in",
        "privacy/audit.py",
        "excess=leakage.bits - leakage.floor, at_least",
        "excess=leakage.bits, at_least",
        (_SEARCHED + "test_three_values_by_hand",),
    ),
    Bug(
        "after an iteration a search is audited as sealed",
        "privacy/audit.py",
        "if trace.probes:  #",
        "if False:  #",
        (_SEARCHED + "test_iteration_and_search_for_others_is_an_upper_bound",),
    ),
    Bug(
        "the answer alone tells nothing",
        "privacy/audit.py",
        "floor[list(found)] = list(found.values())",
        "pass",
        (_SEARCHED + "test_three_values_by_hand",),
    ),
    Bug(
        "a list tells as much as one value",
        "privacy/search_beliefs.py",
        "int(number[i]) * known[id(each)",
        "known[id(each)",
        (_SEARCHED + "test_lists",),
    ),
    Bug(
        "large parts of a cell weigh as keys do",
        "privacy/search_beliefs.py",
        " - math.log(part[0].b - part[0].a)",
        "",
        (_SEARCHED + "test_halves_of_a_midpoint_are_believed_in_evenly",),
    ),
    Bug(
        "the lower of two middle values is the answer",
        "privacy/search_beliefs.py",
        "apart = int(low < high)",
        "apart = 0",
        (_SEARCHED + "test_halves_of_a_midpoint_are_believed_in_evenly",),
    ),
    Bug(
        "the lower end belongs to a cell",
        "privacy/search_beliefs.py",
        "seen.cells[c].a < seen.keys.key(value)",
        "seen.cells[c].a <= seen.keys.key(value)",
        (_SEARCHED + "test_iteration_and_search_together",),
    ),
    Bug(
        "parts of a cell are not weighed against each other",
        "privacy/search_beliefs.py",
        "float(chances[c]) * weight / total",
        "float(chances[c]) * weight",
        (_SEARCHED + "test_iteration_and_search_together",),
    ),
    Bug(
        "what is near the answer may be it",
        "privacy/search_beliefs.py",
        "if low == high and not piece.lower <= low <= piece.upper:",
        "if False:",
        (_SEARCHED + "test_an_answer_that_the_iteration_has_ruled_out_for_a_node_is_not_its_own",),
    ),
    Bug(
        "a bound is said to be exact",
        "privacy/search_beliefs.py",
        '"upper bound" if exact is None else',
        '"exact" if exact is None else',
        (_SEARCHED + "test_too_many_ways_are_an_upper_bound",),
    ),
    Bug(
        "what a prior excludes is believed",
        "privacy/search_beliefs.py",
        "        if any(_log_chance",
        "        if not any(_log_chance",
        (_SEARCHED + "test_three_values_by_hand",),
    ),
    Bug(
        "a grid's cell begins at its key",
        "privacy/published.py",
        "2 * (end - SIGN) + 1",
        "2 * (end - SIGN)",
        (_SEARCHED + "test_three_values_by_hand",),
    ),
    Bug(
        "a coalition forgets what it brought",
        "privacy/published.py",
        "total=cell.total - off",
        "total=cell.total",
        (_SEARCHED + "test_all_alike",),
    ),
    Bug(
        "a rank at the end of a cell is in the next",
        "privacy/published.py",
        "return bisect_left(list(accumulate",
        "return bisect_right(list(accumulate",
        (_SEARCHED + "test_all_alike",),
    ),
    Bug(
        "searches may contradict each other",
        "privacy/published.py",
        "if upto.setdefault(edge, weight) != weight:",
        "if upto.setdefault(edge, weight) is None:",
        (_TOGETHER + "test_what_cannot_be_joined_is_refused", _TOGETHER + "test_other_values_contradict"),
    ),
    Bug(
        "the largest float is the end of all",
        "privacy/published.py",
        "math.inf if high == _LARGEST else high",
        "high",
        (_SEARCHED + "test_no_bounds",),
    ),
    Bug(
        "totals may not add up",
        "privacy/published.py",
        "if below + sum(probe.totals) != upto[probe.edges[-1]]:",
        "if below < 0:",
        (_SEARCHED + "test_damaged_traces_are_refused",),
    ),
    Bug(
        "cells lie between the multiples",
        "privacy/posterior.py",
        "math.floor(value / resolution + 0.5)",
        "math.floor(value / resolution)",
        (_POSTERIOR + "test_cells_are_what_rounds_to_the_same_multiple",),
    ),
    Bug(
        "an atom at the end of its cell is lost",
        "privacy/posterior.py",
        "low <= piece.lower < high:\n",
        "low < piece.lower < high:\n",
        (_POSTERIOR + "test_a_point_anywhere_in_its_cell_tells_that_cell",),
    ),
    Bug(
        "an interval's end divides an atom's cell",
        "privacy/posterior.py",
        " if not any(low < edge < high for low, high in cells)",
        "",
        (_POSTERIOR + "test_a_point_within_an_interval_s_last_cell",),
    ),
    Bug(
        "a part of a piece is all of it",
        "privacy/posterior.py",
        "self.prior.log_mass(low, high) - whole",
        "self.prior.log_mass(low, high)",
        (_POSTERIOR + "test_mixture_bits_against_a_sum_over_cells",),
    ),
    Bug(
        "bits are nats",
        "privacy/posterior.py",
        "self.prior.log_mass(low, high))\n        return max(total, 0.0) / math.log(2)",
        "self.prior.log_mass(low, high))\n        return max(total, 0.0)",
        (_POSTERIOR + "test_first_message_of_three_nodes",),
    ),
    Bug(
        "an atom at the median is not counted",
        "privacy/posterior.py",
        "if below + at < 0.5:",
        "if below < 0.5:",
        (_POSTERIOR + "test_mixture_bits_against_a_sum_over_cells",),
    ),
    Bug(
        "a prior may exclude what was observed",
        "privacy/posterior.py",
        "    if mass == -math.inf:\n        raise no_mass(node)",
        "    if mass > 0:\n        raise no_mass(node)",
        (_POSTERIOR + "test_prior_without_mass_names_the_node_and_no_number",),
    ),
    Bug(
        "a point weighs as its density",
        "privacy/sealed.py",
        "(log_cd if low == high else 0.0)",
        "0.0",
        (_SEALED + "test_equals_naive_enumeration",),
    ),
    Bug(
        "sums of z(0) vary as differences do",
        "privacy/sealed.py",
        "half * (np.diag(degree) + adjacency)",
        "half * (np.diag(degree) - adjacency)",
        (_SEALED + "test_equals_naive_enumeration",),
    ),
    Bug(
        "the slopes are exchanged",
        "privacy/sealed.py",
        "observation.q0 - right, observation.q0 + left",
        "observation.q0 - left, observation.q0 + right",
        (_SEALED + "test_what_happened_is_among_the_hypotheses",),
    ),
    Bug(
        "what is likely is left out",
        "privacy/sealed.py",
        "_FAR = 9.0",
        "_FAR = 1.0",
        (_SEALED + "test_equals_naive_enumeration",),
    ),
    Bug(
        "a node is never inside at first",
        "privacy/sealed.py",
        "        if lower < x < upper:\n            add(u, above, below, x, x)\n",
        "",
        (_SEALED + "test_equals_naive_enumeration",),
    ),
    Bug(
        "all sets are bipartite",
        "privacy/sealed.py",
        "return sides if not (adjacency",
        "return sides if True or not (adjacency",
        (_SEALED + "test_equals_naive_enumeration",),
    ),
]

_SEEDS = [
    Bug(
        "particles without their seed",
        "privacy/particles.py",
        "np.random.default_rng([seed, k])",
        "np.random.default_rng()",
        (_SEALED + "test_a_seed_repeats_what_is_sampled",),
    ),
    Bug(
        "Sobol points without their seed",
        "privacy/enumeration.py",
        "_sobol(points, np.random.default_rng([seed, k]))",
        "_sobol(points, np.random.default_rng())",
        (_SEALED + "test_a_seed_repeats_what_is_sampled",),
    ),
    Bug(
        "an estimate without its seed",
        "studies/estimate.py",
        "rng = np.random.default_rng(seed)",
        "rng = np.random.default_rng()",
        (_ESTIMATE + "test_a_seed_repeats_an_estimate",),
    ),
    Bug(
        "a run without its seed",
        "system.py",
        "np.random.default_rng(rng).spawn(3)",
        "np.random.default_rng().spawn(3)",
        (_SOLVING + "test_scaling_by_two_to_the_k_is_exact",),
    ),
    Bug(
        "a graph without its seed",
        "graphs/generators.py",
        "return np.random.default_rng(rng)",
        "return np.random.default_rng()",
        (_GRAPHS + "test_same_seed_same_graph",),
    ),
    Bug(
        "noise without its seed",
        "dp/mechanisms.py",
        "streams(rng).z0.spawn(1)[0]",
        "np.random.default_rng()",
        (_DP + "test_only_the_values_change_and_a_seed_repeats_them",),
    ),
    Bug(
        "noise that repeats z(0)",
        "dp/mechanisms.py",
        "streams(rng).z0.spawn(1)[0]",
        "streams(rng).z0",
        (_DP + "test_the_noise_repeats_no_other_draw_of_the_same_seed",),
    ),
]

_NOISE = [
    Bug(
        "noise is not rounded up",
        "dp/mechanisms.py",
        "return _UP / (2 * half(a))",
        "return 1 / _UP / (2 * half(a))",
        (_DP + "test_gaussian_noise_suffices_and_a_trillionth_less_does_not",),
    ),
    Bug(
        "a vector is as sensitive as a number, with Gaussian noise",
        "dp/mechanisms.py",
        "nextafter(sqrt(coordinates) * (",
        "nextafter((",
        (_DP + "test_noise_grows_with_the_sensitivity_of_a_vector",),
    ),
    Bug(
        "a vector is as sensitive as a number, with Laplace noise",
        "dp/mechanisms.py",
        "nextafter(coordinates * (",
        "nextafter((",
        (_DP + "test_noise_grows_with_the_sensitivity_of_a_vector",),
    ),
    Bug(
        "Laplace noise of the wrong scale",
        "dp/mechanisms.py",
        "generator.laplace(scale=std / sqrt(2), size=shape)",
        "generator.laplace(scale=std / 2, size=shape)",
        (_DP + "test_the_noise_has_the_spread_it_claims_and_the_values_are_clipped",),
    ),
    Bug(
        "values are not clipped",
        "dp/mechanisms.py",
        "clipped = np.clip(problem.values, *mechanism.bounds)",
        "clipped = problem.values",
        (_DP + "test_the_noise_has_the_spread_it_claims_and_the_values_are_clipped",),
    ),
    Bug(
        "noised values keep their bounds",
        "dp/mechanisms.py",
        "problem.with_values(noised, bounded=False)",
        "problem.with_values(noised, bounded=True)",
        (_SEARCH_METHOD + "test_noise_does_not_keep_to_bounds",),
    ),
    Bug(
        "Laplace losses of half their weight",
        "dp/loss.py",
        "weight = np.full(2 * last + 1, np.tanh(step / 4))",
        "weight = np.full(2 * last + 1, np.tanh(step / 4) / 2)",
        (_DP + "test_a_hundred_laplace_runs_cost_what_the_pld_accountant_says",),
    ),
    Bug(
        "many runs cost what one does",
        "dp/mechanisms.py",
        "precision += count / _multiplier",
        "precision += 1 / _multiplier",
        (_DP + "test_gaussian_runs_compose_to_one_gaussian",),
    ),
    Bug(
        "no delta is a delta",
        "dp/mechanisms.py",
        "if not 0 < delta < 1:",
        "if not 0 <= delta < 1:",
        (_LEDGER + "test_budgets_that_are_none",),
    ),
    Bug(
        "hardened noise may be seeded",
        "dp/mechanisms.py",
        "    if rng is not None:\n        raise InputError",
        "    if rng is None and False:\n        raise InputError",
        (_DP + "test_hardened_noise_cannot_be_seeded",),
    ),
    Bug(
        "hardened noise is not proved",
        "dp/mechanisms.py",
        "        std *= 1.001\n",
        "        break\n",
        (_DP + "test_hardened_noise_is_enlarged_until_the_claim_is_proved",),
    ),
]

_LEDGERS = [
    Bug(
        "a budget that is just spent is exceeded",
        "dp/ledger.py",
        "spent[name] > most",
        "spent[name] >= most",
        (_LEDGER + "test_a_budget_of_runs",),
    ),
    Bug(
        "bounds of several runs are those of the first",
        "privacy/disclosed.py",
        "lower, upper = max(low for low, _ in several), min(high for _, high in several)",
        "lower, upper = several[0]",
        (_TOGETHER + "test_runs_of_all_kinds_against_enumeration",),
    ),
    Bug(
        "runs without noise cost no epsilon",
        "dp/ledger.py",
        "if claims.total() == len(entries) else inf",
        "if claims else 0.0",
        (_LEDGER + "test_bounds_intersect_and_bits_add_up",),
    ),
    Bug(
        "the exposed value stays in the file",
        "dp/ledger.py",
        "np.where(exposed, -inf, lower), np.where(exposed, inf, upper)",
        "lower, upper",
        (_LEDGER + "test_bounds_intersect_and_bits_add_up",),
    ),
    Bug(
        "a session that differs by two is let through",
        "dp/sessions.py",
        "APART = 3 ",
        "APART = 2 ",
        (_SESSIONS + "test_a_session_that_differs_by_one_or_two_is_refused",),
    ),
    Bug(
        "a newcomer is no difference",
        "dp/sessions.py",
        "((one, other), (other, one))",
        "((other, one),)",
        (_SESSIONS + "test_participants_in_one_of_two_sessions_are_counted",),
    ),
    Bug(
        "a renewed certificate is a newcomer",
        "dp/sessions.py",
        "self.name == other.name or self.fingerprint",
        "self.fingerprint",
        (_SESSIONS + "test_a_renewed_certificate_or_another_name_is_the_same_participant",),
    ),
    Bug(
        "weight 0 is no difference",
        "dp/sessions.py",
        "a.weight != b.weight for b",
        "False for b",
        (_SESSIONS + "test_another_weight_is_a_difference",),
    ),
    Bug(
        "sessions of others are joined",
        "dp/ledger.py",
        "                among=session.among,\n",
        "",
        (_SESSIONS + "test_sessions_of_other_participants_are_not_joined",),
    ),
    Bug(
        "an aborted session is joined as if all were known",
        "dp/ledger.py",
        'joins = state == "over" and not session.value',
        "joins = not session.value",
        (_SESSIONS + "test_one_aborted_on_the_way_is_added_up",),
    ),
    Bug(
        "a session taken up again is refused",
        "dp/ledger.py",
        "if session.digest not in {each.digest for each in self.sessions}:",
        "if session.digest:",
        (_SESSIONS + "test_a_session_that_has_begun_is_not_refused_and_counts_once",),
    ),
    Bug(
        "a session taken up again counts twice",
        "dp/ledger.py",
        "if (session.digest, session.value) not in known:",
        "if known is not None:",
        (_SESSIONS + "test_a_session_that_has_begun_is_not_refused_and_counts_once",),
    ),
    Bug(
        "a changed value is let through",
        "dp/ledger.py",
        '        if not self._is_of(datum):\n            text = "another',
        '        if False:\n            text = "another',
        (_SESSIONS + "test_another_value_is_refused_and_overridden_adds_up",),
    ),
    Bug(
        "minus zero is another datum",
        "dp/ledger.py",
        ".ravel() + 0.0",
        ".ravel()",
        (_LEDGER + "test_minus_zero_is_zero",),
    ),
    Bug(
        "others may read a ledger",
        "dp/ledger.py",
        "file.write(text.encode()), mode=0o600)",
        "file.write(text.encode()), mode=0o644)",
        (_LEDGER + "test_only_its_owner_can_read_it",),
    ),
    Bug(
        "a damaged ledger is read",
        "dp/ledger.py",
        'if content.pop("checksum") != _checksum(content):',
        'if not content.pop("checksum"):',
        (_LEDGER + "test_another_figure_in_an_entry_is_noticed",),
    ),
    Bug(
        "another ledger in its place is not noticed",
        "dp/ledger.py",
        "if book.seal != self._book.seal:",
        "if book.seal is None:",
        (_LEDGER + "test_another_ledger_in_its_place_is_noticed",),
    ),
    Bug(
        "two may write at once",
        "dp/ledger.py",
        "fcntl.LOCK_EX",
        "fcntl.LOCK_SH",
        (_LEDGER + "test_many_writers_lose_nothing",),
    ),
    Bug(
        "a node that is inside is read through",
        "privacy/inversion.py",
        "unsure = inside[1:] | inside[:-1] | wrong[2:] | wrong[1:-1] | wrong[:-2]",
        "unsure = wrong[2:] | wrong[1:-1] | wrong[:-2]",
        (_ATTACK + "test_values_are_read_off_nodes_that_are_not_heard",),
    ),
    Bug(
        "an iteration that is not sent is recorded",
        "protocol/certificate.py",
        "if self._sampled is None or t != known_at(self._sampled[0], self._diameter):",
        "if self._sampled is None or t != known_at(self._sampled[0], self._diameter) + 1:",
        (_SEARCH_METHOD + "test_iterating_ends_when_all_nodes_know",),
    ),
    Bug(
        "any datum may use a ledger",
        "dp/ledger.py",
        "seal is None or hmac.compare_digest(seal[1], _digest(datum, seal[0])[1])",
        "seal is None or len(_digest(datum, seal[0])[1]) == len(seal[1])",
        (_LEDGER + "test_a_ledger_belongs_to_the_first_datum_it_is_opened_with",),
    ),
    Bug(
        "a ledger is overwritten",
        "dp/ledger.py",
        "            if file.exists():",
        "            if file.is_dir():",
        (_LEDGER + "test_there_must_be_a_file_and_a_folder",),
    ),
    Bug(
        "digests can be linked",
        "dp/ledger.py",
        "salt or secrets.token_bytes(32)",
        "salt or bytes(32)",
        ("tests/dp/test_ledger.py",),
    ),
]

_MANY_SEARCHES = [
    Bug(
        "many runs: the larger half is no half",
        "engines/searching.py",
        "(new - 1 <= old - new)",
        "(new <= old - new)",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: the last row is not counted",
        "engines/searching.py",
        "(further <= rows) &",
        "(further < rows) &",
        (
            _SEARCHING + "test_many_runs_are_each_the_plain_search",
            _SEARCHING + "test_runs_of_fewer_values_have_the_others_above_their_bracket",
        ),
    ),
    Bug(
        "many runs: thresholds by key are uneven",
        "engines/searching.py",
        "each * j + rest * j // np.uint64(count + 1)",
        "each * j",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: the sum is no step",
        "engines/searching.py",
        "known.steps + (known.b - known.a != 1)",
        "known.steps",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: an opening may be taken for a tie",
        "engines/searching.py",
        "if not opened:",
        "if True:",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: values of no weight are answers",
        "engines/searching.py",
        "(self.up_to[1:] <= self.below)",
        "(self.up_to[1:] < self.below)",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: a value at a threshold is above it",
        "engines/searching.py",
        "(keys <= edge).view",
        "(keys < edge).view",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: ties are asked about without end",
        "engines/searching.py",
        "runs.running & runs.tied & (runs.tie_probes < TIE_PROBES)",
        "runs.running & runs.tied",
        (_SEARCHING + "test_many_runs_are_each_the_plain_search",),
    ),
    Bug(
        "many runs: the multiple before is not round",
        "engines/searching.py",
        "for k in (near, near - 1.0):",
        "for k in (near,):",
        (_SEARCHING + "test_roundest_of_brackets_that_begin_at_a_decimal",),
    ),
    Bug(
        "one search: a value at an edge is above it",
        "engines/searching.py",
        'np.searchsorted(self.keys, edges, "right")',
        'np.searchsorted(self.keys, edges, "left")',
        (_SEARCHING + "test_search_of_values_is_that_of_their_participants",),
    ),
    Bug(
        "one search: values without weight count",
        "engines/searching.py",
        "        if least == 0:\n",
        "        if least < 0:\n",
        (_SEARCHING + "test_search_of_values_is_that_of_their_participants",),
    ),
    Bug(
        "the answer has no place of its own",
        "trace.py",
        "edges.update((answers[k] - 1, answers[k]))",
        "edges.update((answers[k],))",
        (_SEARCHING + "test_probes_and_places_tell_what_was_made_public",),
    ),
    Bug(
        "a search takes no rounds for keys",
        "engines/searching.py",
        "(len(steps) + 2) * problem.graph.diameter()",
        "(len(steps) + 1) * problem.graph.diameter()",
        (_SEARCH_METHOD + "test_participants_search_alike",),
    ),
]

_STATES = [
    Bug(
        "states: of two statements of one signer the later one counts",
        "protocol/participant.py",
        "        if known is not None:\n            raise",
        "        if False:\n            raise",
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: final signatures on other answers count",
        "protocol/participant.py",
        "statement.context == self.course.context)",
        'statement.context == self.course.context or statement.kind == b"F")',
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: what was agreed before is not part of the context",
        "protocol/statements.py",
        'return hashlib.sha256(context + struct.pack(f"<{len(totals)}Q", *totals) + sealed).digest()',
        "return hashlib.sha256(context + sealed).digest()",
        (_LYING + "[other statements]",),
    ),
    Bug(
        "states: a statement of any kind is read as a contribution",
        "protocol/course.py",
        "        if statement.kind != kind:",
        '        if statement.kind == b"D":',
        (_LYING + "[other statements]",),
    ),
    Bug(
        "states: a step is on disk after it is told",
        "net/peer.py",
        """            if not self._keep(Inputs(self.exchange.pack(inputs))):
                return
            self.exchange.step(inputs)
""",
        """            record = Inputs(self.exchange.pack(inputs))
            self.exchange.step(inputs)
            self._post()
            if not self._keep(record):
                return
""",
        (_BEHAVING,),
    ),
    Bug(
        "states: the last step is not played again",
        "net/session.py",
        "    for record in records:\n        match record:",
        "    for record in records[:-1]:\n        match record:",
        (_BEHAVING,),
    ),
    Bug(
        "states: a session that ended is taken up again",
        "net/session.py",
        "        if isinstance(record, Broken):\n            raise _over(record)",
        "        if isinstance(record, Broken):\n            break",
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: those who heard else are shown nothing",
        "net/gossip.py",
        "if self._participant.apart:",
        "if self._asked < 0:",
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: nobody is asked but who should have told",
        "net/gossip.py",
        "if self._asked < step:",
        "if step >= 0:",
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: only the newest is told to who asks",
        "net/gossip.py",
        "            wanted = [self._held(step, signer) for",
        "            wanted = [self._held(max(step, self._participant.step), signer) for",
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: evidence of two statements shows one of them",
        "protocol/participant.py",
        "self._show([known, statement])",
        "self._show([statement])",
        (_LYING + "[two keys]",),
    ),
    Bug(
        "states: totals that do not open are taken",
        "protocol/votes.py",
        "        if add(points) != commit(number, blinding):\n            return None",
        "        if not points:\n            return None",
        (_ONE_VOTE,),
    ),
    Bug(
        "states: of a pair whose masks do not cancel the first is shown",
        "protocol/participant.py",
        "self._show([disputes[i], disputes[j]])",
        "self._show([disputes[i]])",
        (_ONE_VOTE,),
    ),
    Bug(
        "states: who waits does not ask again",
        "net/peer.py",
        "now - max(self._progress, self._nudged) >= RETRY",
        "now - max(self._progress, self._nudged) >= 1000 * RETRY",
        (_BEHAVING,),
    ),
]

_FLOODS = [
    Bug(
        "the oldest stranger goes, and not one at random",
        "net/transports/strangers.py",
        "_draw.choice(same)",
        "same[0]",
        (_STRANGERS + "test_a_handshake_lives_as_long_as_it_says",),
    ),
    Bug(
        "one source may fill all places",
        "net/transports/strangers.py",
        "if len(same) >= self.of_one:",
        "if len(same) >= self.most:",
        (_STRANGERS + "test_one_source_cannot_push_out_another",),
    ),
    Bug(
        "a hello needs no cookie",
        "net/transports/seal.py",
        'if kind == b"H" and not self._gave(token, theirs):',
        'if kind == b"H" and not token:',
        (_SEALS + "test_who_has_not_seen_them_talk_has_no_signature_checked",),
    ),
    Bug(
        "an answer need not show that it saw the hello",
        "net/transports/seal.py",
        "not (self._asked and token == self._ephemeral.public[:_TOKEN]):",
        "not self._asked:",
        (_SEALS + "test_who_has_not_seen_them_talk_has_no_signature_checked",),
    ),
    Bug(
        "a cookie is for every ephemeral key",
        "net/transports/seal.py",
        'return hmac.digest(key, theirs, "sha256")[:_TOKEN]',
        'return hmac.digest(key, b"", "sha256")[:_TOKEN]',
        (_SEALS + "test_a_cookie_is_for_one_ephemeral_key_of_one_neighbour_and_gets_old",),
    ),
    Bug(
        "signatures are checked as long as there are some",
        "net/transports/seal.py",
        "if self._checked >= 2 * _CHECKS or _RANDOM.random() >= self._chance:",
        "if self._checked < 0:",
        (_SEALS + "test_who_listens_in_and_forges_has_no_more_than_its_share",),
    ),
    Bug(
        "a log grows with every link that comes and goes",
        "net/transports/transport.py",
        "self._full[j] = full + REPEAT_AFTER",
        "self._full[j] = full",
        ("tests/net/test_transports.py::test_a_neighbour_cannot_fill_a_log",),
    ),
]

_PROCESSES = [
    Bug(
        "a node of midst up keeps its starter's end of the lifeline",
        "net/local.py",
        "        os.close(self.other_end)\n",
        "",
        ("tests/cli/test_up.py::test_killed_it_leaves_nobody_behind",),
    ),
    Bug(
        "a value that others can read is taken",
        "cli/node.py",
        "str(file), alone=True)",
        "str(file), alone=False)",
        ("tests/net/test_node_command.py",),
    ),
    Bug(
        "a process may be dumped where a limit is raised",
        "net/process.py",
        "prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)",
        "prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)",
        ("tests/net/test_process.py::test_no_core_is_left",),
    ),
]

BUGS: tuple[Bug, ...] = (
    *_STEP,
    *_SURFACES,
    *_KEYS_AND_MASKS,
    *_SEARCHES,
    *_PARTICIPANTS,
    *_CERTIFICATES,
    *_JOURNALS,
    *_WIRES,
    *_GOSSIPS,
    *_AUDITS,
    *_SEEDS,
    *_NOISE,
    *_LEDGERS,
    *_MANY_SEARCHES,
    *_STATES,
    *_FLOODS,
    *_PROCESSES,
)
