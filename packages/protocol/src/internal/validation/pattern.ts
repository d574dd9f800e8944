/**
 * Regular expressions in linear time, compiled in bounded time.
 *
 * `RegExp` backtracks: it tries alternatives one after the other, and needs years for a pattern as short as `^(a+)+$`
 * and a text of 40 letters. So `RegExp` runs only patterns with at most one choice. All other patterns run here as a
 * nondeterministic automaton (Thompson), which follows all alternatives at once. Look-around and back references have
 * no such automaton and are refused.
 */
import { wellFormed } from "../../Text.ts"
import {
  assemble,
  type Assertion,
  type Matches,
  maxInstructions,
  type PatternNode,
  run,
  type Test
} from "./automaton.ts"
import { hashable } from "./values.ts"
import { BudgetExceeded } from "./validationState.ts"

const sequence = (nodes: ReadonlyArray<PatternNode>): PatternNode =>
  nodes.length === 1 ? nodes[0]! : { _tag: "Sequence", nodes, size: nodes.reduce((sum, { size }) => sum + size, 0) }

const choice = (nodes: ReadonlyArray<PatternNode>): PatternNode =>
  nodes.length === 1 ? nodes[0]! : { _tag: "Choice", nodes, size: nodes.reduce((sum, { size }) => sum + 2 + size, 1) }

// No text is as long, and products of such counts are finite.
const maxCount = 1e9
const maxSize = 1e18

const repeat = (node: PatternNode, min: number, max: number): PatternNode => {
  const { size } = node
  const optional = max === Infinity ? size + 2 : (max - min) * (size + 1)
  // An empty group matches the same text however often it is repeated.
  return { _tag: "Repeat", node, min, max, size: size === 0 ? 0 : Math.min(min * size + optional, maxSize) }
}

/** Whether the unit at a position is a letter, a digit or an underscore of ASCII. */
const isWordAt = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at)
  return (unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90) || (unit >= 48 && unit <= 57) || unit === 95
}
const atBoundary: Assertion = (text, at) => isWordAt(text, at - 1) !== isWordAt(text, at)

const assertion = (holds: Assertion, isStart = false): PatternNode => ({ _tag: "Assertion", holds, isStart, size: 1 })
const start = assertion((_, at) => at === 0, true)
const end = assertion((text, at) => at === text.length)
const boundary = assertion(atBoundary)
const noBoundary = assertion((text, at) => !atBoundary(text, at))

/** Makes the test for one character of a class or an escape. `RegExp` decides; the results for ASCII are cached. */
const classOf = (source: string): Matches => {
  const expression = new RegExp(`^(?:${source})$`, "u")
  const known = new Array<boolean | undefined>(128)
  return (character) => {
    const code = character.charCodeAt(0)
    return code < 128 ? known[code] ??= expression.test(character) : expression.test(character)
  }
}

/** The features of a pattern's source on which the time to compile it depends. */
interface Syntax {
  readonly chars: number
  /** The number of Unicode property escapes. */
  readonly escapes: number
  /** The most characters in one character class, and the sum of the squares of these lengths. */
  readonly classChars: number
  readonly squares: number
}

const syntaxOf = (source: string): Syntax => {
  let escapes = 0
  let classChars = 0
  let squares = 0
  let open = -1
  for (let at = 0; at < source.length; at++) {
    const character = source[at]
    if (character === "\\") {
      at++
      if (source[at] === "p" || source[at] === "P") escapes++
    } else if (character === "[" && open < 0) {
      open = at
    } else if (character === "]" && open >= 0) {
      classChars = Math.max(classChars, at - open)
      squares += (at - open) ** 2
      open = -1
    }
  }
  return { chars: source.length, escapes, classChars, squares }
}

const quantifier = /([*+?]|\{(\d+)(,(\d*))?\})\??/uy
const escape = /\\(?:u\{[0-9a-f]+\}|u[0-9a-f]{4}(?:\\u[0-9a-f]{4})?|x[0-9a-f]{2}|c[a-z]|[pP]\{[^}]*\}|.)/iuy
const group = /\((?:\?:|\?<[^=!>][^>]*>)?/uy

/** Parses a pattern whose syntax `RegExp` has checked. */
class Parser {
  readonly #source: string
  readonly #classOf: (source: string) => Matches
  #at = 0

  constructor(source: string, classOf: (source: string) => Matches) {
    this.#source = source
    this.#classOf = classOf
  }

  parse(): PatternNode {
    const nodes = [this.#sequence()]
    while (this.#source[this.#at] === "|") {
      this.#at++
      nodes.push(this.#sequence())
    }
    return choice(nodes)
  }

  #sequence(): PatternNode {
    const nodes: Array<PatternNode> = []
    while (this.#at < this.#source.length && this.#source[this.#at] !== "|" && this.#source[this.#at] !== ")") {
      nodes.push(this.#quantified(this.#atom()))
    }
    return sequence(nodes)
  }

  #take(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at
    const found = expression.exec(this.#source)
    if (found !== null) this.#at += found[0].length
    return found
  }

  #quantified(node: PatternNode): PatternNode {
    const found = this.#take(quantifier)
    if (found === null) return node
    const [, sign, from, range, to] = found
    if (sign === "*") return repeat(node, 0, Infinity)
    if (sign === "+") return repeat(node, 1, Infinity)
    if (sign === "?") return repeat(node, 0, 1)
    const min = Math.min(Number(from), maxCount)
    return repeat(node, min, range === undefined ? min : to === "" ? Infinity : Math.min(Number(to), maxCount))
  }

  #atom(): PatternNode {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at)!)
    if (character === "(") {
      if (this.#take(group) === null || this.#source.startsWith("(?", this.#at - 1)) {
        throw new TypeError("look-around is not supported")
      }
      const node = this.parse()
      this.#at++
      return node
    }
    if (character === "[") return this.#characters(this.#class())
    if (character === "\\") return this.#escaped()
    this.#at += character.length
    if (character === "^") return start
    if (character === "$") return end
    if (character === ".") return this.#characters(".")
    return { _tag: "Character", matches: (other) => other === character, isWide: false, size: 1 }
  }

  #characters(source: string): PatternNode {
    return { _tag: "Character", matches: this.#classOf(source), isWide: !isNarrow(source), size: 1 }
  }

  #class(): string {
    const start = this.#at
    for (this.#at++; this.#source[this.#at] !== "]"; this.#at++) if (this.#source[this.#at] === "\\") this.#at++
    return this.#source.slice(start, ++this.#at)
  }

  #escaped(): PatternNode {
    const [source] = this.#take(escape)!
    if (/^\\[1-9k]/.test(source)) throw new TypeError("back references are not supported")
    if (source === "\\b") return boundary
    if (source === "\\B") return noBoundary
    return this.#characters(source)
  }
}

/** Counts the points at which backtracking has a choice. A repeated choice counts as infinitely many. */
const choices = (node: PatternNode): number => {
  switch (node._tag) {
    case "Character":
    case "Assertion":
      return 0
    case "Sequence":
      return node.nodes.reduce((sum, child) => sum + choices(child), 0)
    case "Choice":
      return node.nodes.reduce((sum, child) => sum + choices(child), 1)
    case "Repeat":
      if (node.node._tag !== "Character") return node.max === 1 ? 1 + choices(node.node) : Infinity
      return node.min === node.max ? 0 : 1
  }
}

const isAnchored = (node: PatternNode): boolean =>
  node._tag === "Sequence"
    ? node.nodes.length > 0 && isAnchored(node.nodes[0]!)
    : node._tag === "Assertion" && node.isStart

/**
 * Returns how many characters `RegExp` may read for each character of the text, where the pattern has at most one
 * choice. It starts again at each character, and reads up to the length of the pattern each time (`a{1000000000}`, or a
 * long word).
 */
const span = (node: PatternNode): number => {
  switch (node._tag) {
    case "Character":
    case "Assertion":
      return 1
    case "Sequence":
    case "Choice":
      return node.nodes.reduce((sum, child) => sum + span(child), 0)
    case "Repeat":
      return Math.max(1, node.min) * span(node.node)
  }
}

// `RegExp` does not run longer patterns.
const maxNativeChars = 1000
const maxSpan = 256

// `RegExp` compiles a pattern when it first meets text outside of Latin-1. Each class that may contain surrogate pairs
// multiplies the time: eight times `\\p{L}` take 600 ms.
const maxWideClasses = 3

/** Whether a class or an escape matches no surrogate pairs. False for some that do not. */
const isNarrow = (source: string): boolean =>
  /^(?:\\[^pPDWSux]|\[(?!\^)(?:[^\\\x80-\uffff]|\\[^pPDWSux])*\])$/.test(source)

/** Counts the classes that may match surrogate pairs in a pattern as `RegExp` compiles it, which repeats some of them. */
const wideClasses = (node: PatternNode): number => {
  switch (node._tag) {
    case "Character":
      return node.isWide ? 1 : 0
    case "Assertion":
      return 0
    case "Sequence":
    case "Choice":
      return node.nodes.reduce((sum, child) => sum + wideClasses(child), 0)
    case "Repeat": {
      const copies = node.max <= 3 ? node.max : node.min <= 3 ? node.min + 1 : 1
      return copies * wideClasses(node.node)
    }
  }
}

// The most characters that `RegExp` reads at once, in about a millisecond. The automaton can pause.
const maxNativeReads = 1 << 18
// The same, for patterns whose automaton is too large.
const maxReads = 1 << 22

/** Whether `RegExp` takes linear time. Then it is faster than the automaton. */
const isLinear = ({ chars }: Syntax, root: PatternNode, anchored: boolean): boolean => {
  if (chars > maxNativeChars || wideClasses(root) > maxWideClasses) return false
  const many = choices(root)
  return (many === 0 && (anchored || span(root) <= maxSpan)) || (many === 1 && anchored && span(root) <= maxSpan)
}

/**
 * The most work to compile the patterns of one schema, in steps of about 20 ns: measured up to 170 ns for a character,
 * 50 µs for a Unicode property escape, and 1 ns for the square of the length of a character class.
 */
const maxWork = 250_000
const workPerPattern = 100
const workPerChar = 8
const workPerInstruction = 4
const workPerEscape = 2_500
const squaresPerStep = 20

// The steps of the first use of a pattern: `RegExp` compiles it again then, once for each kind of text.
const stepsPerEscape = 10_000
const usesToCompile = 4

// Less than 10 ms for the first use of a pattern.
const maxClassChars = 1_000
const maxEscapes = 16

/** Compiles the patterns of one schema. */
export class Patterns {
  readonly #trusted: boolean
  readonly #tests = new Map<unknown, Test>()
  readonly #classes = new Map<unknown, Matches>()
  #work = 0

  /** `RegExp` runs the patterns without an automaton if they are trusted. Otherwise they are refused. */
  constructor(trusted: boolean) {
    this.#trusted = trusted
  }

  /** Compiles a pattern in the syntax of `new RegExp(…, "u")`. Throws where it is invalid. */
  compile(source: string): Test {
    const known = this.#tests.get(hashable(source))
    if (known !== undefined) return known
    const test = this.#trusted ? this.#compileTrusted(source) : this.#compile(source)
    this.#tests.set(hashable(source), test)
    return test
  }

  #compileTrusted(source: string): Test {
    try {
      return this.#compile(source)
    } catch {
      const regExp = new RegExp(source, "u")
      return (text, state) => {
        state.spend(text.length >> 4)
        return find(regExp, text)
      }
    }
  }

  #compile(source: string): Test {
    const syntax = syntaxOf(source)
    const { chars, classChars, escapes, squares } = syntax
    if (classChars > maxClassChars) {
      throw new TypeError(`it has a character class of more than ${maxClassChars} characters`)
    }
    if (escapes > maxEscapes) throw new TypeError(`it has more than ${maxEscapes} Unicode property escapes`)
    const squareWork = Math.ceil(squares / squaresPerStep)
    this.#spend(workPerPattern + chars * workPerChar + escapes * workPerEscape + squareWork)
    const regExp = new RegExp(source, "u")
    const root = new Parser(source, (part) => this.#class(part)).parse()
    const anchored = isAnchored(root)
    const size = root.size + 1
    const firstSteps = chars + escapes * stepsPerEscape + squareWork * usesToCompile
    if (!isLinear(syntax, root, anchored)) {
      if (size > maxInstructions) throw new TypeError(`it has more than ${maxInstructions} instructions`)
      this.#spend(size * workPerInstruction)
      return afterFirst(firstSteps, run(assemble(root), anchored))
    }
    const reads = anchored && choices(root) === 0 ? 1 : span(root)
    // A pattern with a large automaton has a repetition with an upper bound, and does not read further.
    const most = size > maxInstructions ? size : Infinity
    let automaton: Test | undefined
    return afterFirst(firstSteps, (text, state) => {
      const work = Math.min(text.length, most) * reads
      if (work > maxNativeReads && most === Infinity) {
        automaton ??= run(assemble(root), anchored)
        return automaton(text, state)
      }
      if (work > maxReads && reads > 1) throw new BudgetExceeded(`A text is too long for its pattern`)
      state.spend(4 + (work >> 4))
      return find(regExp, text)
    })
  }

  #class(source: string): Matches {
    const key = hashable(source)
    let matches = this.#classes.get(key)
    if (matches === undefined) this.#classes.set(key, matches = classOf(source))
    return matches
  }

  /** The work so far. */
  get work(): number {
    return this.#work
  }

  #spend(work: number): void {
    if ((this.#work += work) > maxWork) throw new TypeError("the patterns of the schema are too large together")
  }
}

/** Counts the steps of the first use. */
const afterFirst = (firstSteps: number, test: Test): Test => {
  let isFirst = true
  return (text, state) => {
    if (isFirst) {
      state.spendOnce(firstSteps)
      isFirst = false
    }
    return test(text, state)
  }
}

const find = (regExp: RegExp, text: string): boolean => {
  try {
    return regExp.test(text)
  } catch (error) {
    // `RegExp` compiles a pattern at its first use, and only then can reject it as too large.
    throw new BudgetExceeded(
      `A pattern cannot be run (${error instanceof Error ? wellFormed(error.message.slice(-64)) : error})`
    )
  }
}
