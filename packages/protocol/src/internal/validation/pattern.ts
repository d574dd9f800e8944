/**
 * Regular expressions in linear time.
 *
 * `RegExp` backtracks: it tries alternatives one after the other, and needs years for a pattern as short as `^(a+)+$`
 * and a text of 40 letters. So `RegExp` runs only patterns with at most one choice. All other patterns run here as a
 * nondeterministic automaton (Thompson), which follows all alternatives at once. Look-around and back references have
 * no such automaton and are refused.
 */
import { BudgetExceeded, type ValidationState } from "./validationState.ts"

/** Whether a text contains a match of a pattern. */
export type Test = (text: string, state: ValidationState) => boolean

type Matches = (character: string) => boolean
type Assertion = (text: string, at: number) => boolean

type PatternNode =
  | { readonly _tag: "Character"; readonly matches: Matches }
  | { readonly _tag: "Assertion"; readonly holds: Assertion; readonly isStart: boolean }
  | { readonly _tag: "Sequence"; readonly nodes: ReadonlyArray<PatternNode> }
  | { readonly _tag: "Choice"; readonly nodes: ReadonlyArray<PatternNode> }
  | { readonly _tag: "Repeat"; readonly node: PatternNode; readonly min: number; readonly max: number }

const isWord = (character: string | undefined): boolean => character !== undefined && /^\w$/.test(character)
const atBoundary: Assertion = (text, at) => isWord(text[at - 1]) !== isWord(text[at])

/** Makes the test for one character of a class or an escape. `RegExp` decides; the results for ASCII are cached. */
const classOf = (source: string): Matches => {
  const expression = new RegExp(`^(?:${source})$`, "u")
  const known = new Array<boolean | undefined>(128)
  return (character) => {
    const code = character.charCodeAt(0)
    return code < 128 ? known[code] ??= expression.test(character) : expression.test(character)
  }
}

const quantifier = /([*+?]|\{(\d+)(,(\d*))?\})\??/uy
const escape = /\\(?:u\{[0-9a-f]+\}|u[0-9a-f]{4}(?:\\u[0-9a-f]{4})?|x[0-9a-f]{2}|c[a-z]|[pP]\{[^}]*\}|.)/iuy
const group = /\((?:\?:|\?<[^=!>][^>]*>)?/uy

/** Parses a pattern whose syntax `RegExp` has checked. */
class Parser {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  parse(): PatternNode {
    const nodes = [this.#sequence()]
    while (this.#source[this.#at] === "|") {
      this.#at++
      nodes.push(this.#sequence())
    }
    return nodes.length === 1 ? nodes[0]! : { _tag: "Choice", nodes }
  }

  #sequence(): PatternNode {
    const nodes: Array<PatternNode> = []
    while (this.#at < this.#source.length && this.#source[this.#at] !== "|" && this.#source[this.#at] !== ")") {
      nodes.push(this.#quantified(this.#atom()))
    }
    return nodes.length === 1 ? nodes[0]! : { _tag: "Sequence", nodes }
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
    if (sign === "*") return { _tag: "Repeat", node, min: 0, max: Infinity }
    if (sign === "+") return { _tag: "Repeat", node, min: 1, max: Infinity }
    if (sign === "?") return { _tag: "Repeat", node, min: 0, max: 1 }
    const min = Number(from)
    return { _tag: "Repeat", node, min, max: range === undefined ? min : to === "" ? Infinity : Number(to) }
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
    if (character === "^") return { _tag: "Assertion", holds: (_, at) => at === 0, isStart: true }
    if (character === "$") return { _tag: "Assertion", holds: (text, at) => at === text.length, isStart: false }
    if (character === ".") return this.#characters(".")
    return { _tag: "Character", matches: (other) => other === character }
  }

  #characters(source: string): PatternNode {
    return { _tag: "Character", matches: classOf(source) }
  }

  #class(): string {
    const start = this.#at
    for (this.#at++; this.#source[this.#at] !== "]"; this.#at++) if (this.#source[this.#at] === "\\") this.#at++
    return this.#source.slice(start, ++this.#at)
  }

  #escaped(): PatternNode {
    const [source] = this.#take(escape)!
    if (/^\\[1-9k]/.test(source)) throw new TypeError("back references are not supported")
    if (source === "\\b") return { _tag: "Assertion", holds: atBoundary, isStart: false }
    if (source === "\\B") return { _tag: "Assertion", holds: (text, at) => !atBoundary(text, at), isStart: false }
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

type Instruction =
  | { readonly _tag: "Character"; readonly matches: Matches }
  | { readonly _tag: "Assertion"; readonly holds: Assertion }
  | { readonly _tag: "Jump"; to: ReadonlyArray<number> }
  | { readonly _tag: "Found" }

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
const maxSourceLength = 1000
const maxSpan = 256

/** Whether `RegExp` takes linear time. Then it is faster than the automaton. */
const isLinear = (source: string, root: PatternNode, anchored: boolean): boolean => {
  if (source.length > maxSourceLength) return false
  const many = choices(root)
  return (many === 0 && (anchored || span(root) <= maxSpan)) || (many === 1 && anchored && span(root) <= maxSpan)
}

/** The most instructions of an automaton. Each round of a counted repetition has its own. */
const maxInstructions = 2000

/** Compiles a pattern to the instructions of its automaton. */
const assemble = (root: PatternNode): ReadonlyArray<Instruction> => {
  const program: Array<Instruction> = []
  const put = <I extends Instruction>(instruction: I): I => {
    if (program.length >= maxInstructions) throw new TypeError(`it has more than ${maxInstructions} instructions`)
    program.push(instruction)
    return instruction
  }
  const jump = (...to: ReadonlyArray<number>) =>
    put<Extract<Instruction, { readonly _tag: "Jump" }>>({ _tag: "Jump", to })

  const add = (node: PatternNode): void => {
    switch (node._tag) {
      case "Character":
      case "Assertion":
        return void put(node)
      case "Sequence":
        return node.nodes.forEach(add)
      case "Choice": {
        const ends = node.nodes.map((child) => {
          const start = jump()
          const from = program.length
          add(child)
          const end = jump()
          start.to = [from, program.length]
          return end
        })
        // After the last alternative comes a dead end: there is no further alternative.
        put<Instruction>({ _tag: "Assertion", holds: () => false })
        for (const end of ends) end.to = [program.length]
        return
      }
      case "Repeat": {
        for (let count = 0; count < node.min; count++) add(node.node)
        if (node.max === Infinity) {
          const start = jump()
          const from = program.length
          add(node.node)
          jump(program.indexOf(start))
          start.to = [from, program.length]
          return
        }
        const starts = []
        for (let count = node.min; count < node.max; count++) {
          const start = jump()
          starts.push([start, program.length] as const)
          add(node.node)
        }
        for (const [start, from] of starts) start.to = [from, program.length]
      }
    }
  }
  add(root)
  put({ _tag: "Found" })
  return program
}

/** Runs an automaton. Each character of the text is read at most once per instruction. */
const run = (program: ReadonlyArray<Instruction>, anchored: boolean): Test => (text, state) => {
  const reached = new Int32Array(program.length).fill(-1)
  let current: Array<number> = []
  let next: Array<number> = []
  const stack: Array<number> = []

  /** Follows all instructions that read no character. Returns whether the end of the pattern is reached. */
  const follow = (threads: Array<number>, from: number, at: number): boolean => {
    stack.push(from)
    for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
      if (reached[index] === at) continue
      reached[index] = at
      const instruction = program[index]!
      if (instruction._tag === "Found") return true
      if (instruction._tag === "Character") threads.push(index)
      else if (instruction._tag === "Jump") stack.push(...instruction.to)
      else if (instruction.holds(text, at)) stack.push(index + 1)
    }
    return false
  }

  for (let at = 0;;) {
    if ((!anchored || at === 0) && follow(current, 0, at)) return true
    if (at >= text.length || (anchored && current.length === 0)) return false
    state.spend(2 + current.length)
    const character = String.fromCodePoint(text.codePointAt(at)!)
    at += character.length
    next.length = 0
    for (const index of current) {
      const instruction = program[index] as Extract<Instruction, { readonly _tag: "Character" }>
      if (instruction.matches(character) && follow(next, index + 1, at)) return true
    }
    ;[current, next] = [next, current]
  }
}

/**
 * Compiles a pattern in the syntax of `new RegExp(…, "u")`. Throws where it is invalid. `RegExp` runs a pattern without
 * an automaton where it is `trusted`; otherwise such a pattern throws too.
 */
export const compilePattern = (source: string, trusted: boolean): Test => {
  const regExp = new RegExp(source, "u")
  const native = (steps: number): Test => (text, state) => {
    state.spend((text.length * steps) >> 6)
    try {
      return regExp.test(text)
    } catch (error) {
      // `RegExp` compiles a pattern at its first use, and only then can reject it as too large.
      throw new BudgetExceeded(`A pattern cannot be run (${error instanceof Error ? error.message.slice(-64) : error})`)
    }
  }
  try {
    const root = new Parser(source).parse()
    const anchored = isAnchored(root)
    return isLinear(source, root, anchored)
      ? native(anchored && choices(root) === 0 ? 1 : span(root))
      : run(assemble(root), anchored)
  } catch (error) {
    if (trusted) return native(1)
    throw error
  }
}
