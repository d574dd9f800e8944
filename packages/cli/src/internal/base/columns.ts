/**
 * Texts in the columns of a terminal: their widths, cut or filled to a width, broken into lines; and time spans.
 */

const pad = (value: number): string => String(value).padStart(2, "0")

/** A time span in its two largest units. */
export const formatAge = (milliseconds: number): string => {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000))
  const [minutes, hours, days] = [60, 3_600, 86_400].map((unit) => Math.floor(seconds / unit))
  if (days! > 0) return `${days}d${pad(hours! % 24)}h`
  if (hours! > 0) return `${hours}h${pad(minutes! % 60)}m`
  return minutes! > 0 ? `${minutes}m${pad(seconds % 60)}s` : `${seconds}s`
}

// The blocks of East Asian scripts and of emoji.
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1faff}]/u
const narrow = /[\p{Mn}\p{Me}]/u

/** How many columns a character takes. */
const columnsOf = (character: string): number => narrow.test(character) ? 0 : wide.test(character) ? 2 : 1

/** How many columns a text takes. */
export const widthOf = (text: string): number =>
  Array.from(text).reduce((sum, character) => sum + columnsOf(character), 0)

/** Cuts a text to a number of columns, or fills it with spaces. */
export const fit = (value: string, columns: number): string => {
  let used = 0
  let result = ""
  const all = Array.from(value)
  for (const [at, character] of all.entries()) {
    const width = columnsOf(character)
    const isLast = all.slice(at + 1, at + 1 + columns).every((next) => columnsOf(next) === 0)
    if (used + width > columns || (used + width === columns && !isLast)) {
      return columns <= 0 ? "" : `${result}…${" ".repeat(Math.max(0, columns - used - 1))}`
    }
    used += width
    result += character
  }
  return result + " ".repeat(Math.max(0, columns - used))
}

/** Breaks a text into lines of a number of columns, at spaces where there are some. */
export const wrap = (value: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  let used = 0
  for (const word of value.split(" ")) {
    const width = widthOf(word)
    if (line !== "" && used + 1 + width > columns) {
      lines.push(line)
      line = word
      used = width
    } else {
      line += line === "" ? word : ` ${word}`
      used += line === word ? width : width + 1
    }
  }
  return [...lines, line]
}
