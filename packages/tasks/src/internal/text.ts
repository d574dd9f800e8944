/**
 * What is said of a task, in a line: it is read, written and told again with each change, and with each listing.
 */

/** Characters of a status message, or of one about progress. */
export const maxLineChars = 4096

/** A line, cut with a "…" where it is none. */
export const line = (text: string): string => {
  if (text.length <= maxLineChars) return text
  // Not in the middle of a character.
  const whole = text.codePointAt(maxLineChars - 1)! > 0xffff ? maxLineChars - 1 : maxLineChars
  return `${text.slice(0, whole)}…`
}

/** A line for the log, without the ids of tasks: who has all of one may be able to use it, and eight characters tell them apart. */
export const curt = (text: string): string => text.replace(/(?<![\w-])[\w-]{32}(?![\w-])/g, shortened)

/** The id of a task in a log: eight characters tell tasks apart, and who has all of them may be able to use it. */
export const shortened = (id: string): string => `${id.slice(0, 8)}…`
