/**
 * Colors of the output, for terminals only.
 *
 * The rules are those of `TerminalCapabilities` of `effect/cli`, which looks at stdout alone: stderr is often a terminal
 * while stdout is a pipe, and has the errors.
 */

/** Functions that color a text, or return it as it is. */
export interface Colors {
  readonly bold: (text: string) => string
  readonly green: (text: string) => string
  readonly red: (text: string) => string
}

const same = (text: string): string => text

/** No colors. */
export const plain: Colors = { bold: same, green: same, red: same }

// The end of a color leaves other attributes as they are.
const between = (start: number, end: number) => (text: string): string =>
  text === "" ? "" : `\u001b[${start}m${text}\u001b[${end}m`

/** The colors of ANSI. A terminal shows them in the shades that its user has chosen. */
export const ansi: Colors = {
  bold: /* @__PURE__ */ between(1, 22),
  green: /* @__PURE__ */ between(32, 39),
  red: /* @__PURE__ */ between(31, 39)
}

/**
 * Whether a stream gets colors: a terminal does, unless `NO_COLOR` is set to a text or `TERM` is `dumb`. `FORCE_COLOR`
 * adds them to a file or a pipe, and `NO_COLOR` takes precedence.
 */
export const hasColors = (env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean => {
  const { FORCE_COLOR: force = "", NO_COLOR: no = "", TERM: term } = env
  if (term === "dumb" || no !== "") return false
  return isTerminal || (force !== "" && force !== "0" && force.toLowerCase() !== "false")
}

/** The changed lines of a file with colors: added ones in green, removed ones in red. The text must be printable. */
export const colorChanges = (text: string, { green, red }: Colors): string =>
  text.split("\n").map((line) => line.startsWith("+") ? green(line) : line.startsWith("-") ? red(line) : line)
    .join("\n")
