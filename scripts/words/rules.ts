/**
 * The words and openings that no text for people may contain, each with its replacement. They come from the project's glossary in
 * CONTRIBUTING.md.
 */

export interface WordRule {
  /** Matches the word in a sentence. */
  pattern: RegExp;
  /** The replacement that the message suggests. */
  instead: string;
}

/** Words of a private dialect, metaphors and archaic forms. */
export const BANNED_WORDS: readonly WordRule[] = [
  rule("mend(s|ed|ing)?", "fix"),
  rule("(is|are|was|were|be|been) seen to(?! (be|have))", "mark as resolved"),
  rule("alone", "only"),
  rule("(stands|stood)(?! for\\b)", "is, exists, has the state"),
  rule("(is|are|was|were|be|been|being) told", "is notified, is shown"),
  rule("tells? (of|nothing of)", "reports, describes"),
  rule("anew", "again"),
  rule("beside", "next to, in addition to"),
  rule("besides", "in addition"),
  rule("(whoever|whosoever)", "the person who, name the person"),
  rule("nobody", "no person, no caller, name the subject"),
  rule("somebody", "a person, name the person"),
  rule("in the place of", "replaces, instead of"),
  rule("(comes?|came) to nothing", "resolves to nothing, fails"),
  rule("names nothing", "resolves to nothing"),
  rule("whole or not at all", "in one transaction"),
  rule("(for good|once and for all)", "permanently"),
  rule("(goes|went|go) on(?! strike)", "continues"),
  rule("of (its|their|his|her|your|our) own", "its own …"),
  rule("(is|are) to be", "must be"),
  rule("without end", "never expires"),
  rule("(shall|ought)", "must, can"),
  rule("(thereof|whereof|whereby|herein|thereby|wherein|hitherto)", "rewrite the sentence"),
  rule("given up", "dead, permanent failure"),
  rule("tried again", "retried"),
  rule("tr(y|ies|ying) again", "retry"),
  rule("(a|the) (house|housekeeper|caretaker|caretakers)", "maintenance, the service"),
  rule("put right", "fix"),
  rule("at hand", "available"),
  rule("by themselves", "automatically"),
  rule("(lies|lay) (there|beside)", "is stored"),
  rule("as it (is|was|stands)", "unchanged, current"),
  rule("what became of", "the result of"),
  rule("(that|which) (is|are|was) no longer so", "resolved"),
  rule("holds? back", "delays, withholds"),
  rule("e-mail(s|ed|ing)?", "email"),
  rule("ends? otherwise|otherwise than", "has a different result"),
  // A provider sends a request to a receiver. Relay calls a URL.
  rule("(accepted|arriving|duplicate|ignored|refused|rejected|unverified|verified) calls?", "request"),
  rule("calls? (to|of) (a |an |the )?(receivers?|unknown)", "request"),
  rule("calls? (that|which) (became|created|made) no event", "request"),
  rule("(receives?|gets?|got|refuses?|refused) (no|each|every) calls?", "request"),
  rule("(last|recent) calls", "requests"),
  rule("(provider|sender)s? (never )?(called|calls?)", "sends a request"),
];

/** Openings that name no subject. They match only at the start of a sentence. */
export const BANNED_OPENINGS: readonly WordRule[] = [
  opening("(What|Whatever) (?!happens|happened|changed|to )[a-z]+ [a-z]", "name the subject"),
  opening("(Those|Whose|Wherever)", "name the subject"),
  opening("That (is|was|would|will|may|can)", "name the subject"),
  opening("Of (a|an|the|its|their|what|those|works?)", "begin with the subject"),
  opening(
    "(Where|Wherefrom|Whereto) (?!(is|are|do|does|to|can)\\b)",
    'write "If" or "When", or name the subject',
  ),
];

/** Openings of comments that leave out the subject: a comment begins with a noun or a third-person verb. */
export const COMMENT_OPENINGS: readonly WordRule[] = [
  opening("(What|Whether|How|Why|Which|Who|Whom)", "a noun or a third-person verb"),
];

/** British forms that the American dictionary has too. Codes and fields of the specification keep their spelling. */
export const BRITISH: readonly WordRule[] = [
  rule("cancelled", "canceled"),
  rule("cancelling", "canceling"),
  rule("(centre|metre|theatre)s?", "center …"),
  rule("fulfil(?!_)(s|ment)?", "fulfill"),
  rule("(favour|honour|labour)s?", "favor, honor, labor"),
  rule("(labelled|modelled|signalled)", "one l"),
  rule("(catalogue|dialogue)s?", "catalog, dialog"),
  rule("whilst|amongst|towards", "while, among, toward"),
];

/** Maximum number of words of a sentence in the dashboard and the documentation. */
export const MAX_SENTENCE_WORDS = 30;
/** Maximum of the median number of words of those sentences. */
export const MAX_MEDIAN_WORDS = 16;

function rule(words: string, instead: string): WordRule {
  return { pattern: new RegExp(`(?<![\\w-])(?:${words})(?![\\w-])`, "i"), instead };
}

function opening(words: string, instead: string): WordRule {
  return { pattern: new RegExp(`^(?:${words})\\b`), instead };
}
