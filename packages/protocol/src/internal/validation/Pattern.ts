/**
 * Regular expressions that take linear time. The engine of JavaScript tries alternatives one after the other, and a pattern as
 * short as `^(a+)+$` takes it years over 40 letters. Those that leave it no more than one choice are given to it; all others
 * are run here, in step with the text, with all alternatives at once. Look-around and references to groups cannot be run so,
 * and are refused.
 */
import { GivenUp, type Work } from "./Work.ts"

/** Whether a pattern is found in a text. */
export type Test = (text: string, work: Work) => boolean

type Matches = (character: string) => boolean
type Assertion = (text: string, at: number) => boolean

type Node =
  | { readonly _tag: "Character"; readonly matches: Matches }
  | { readonly _tag: "Assertion"; readonly holds: Assertion; readonly isStart: boolean }
  | { readonly _tag: "Sequence"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Choice"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly node: Node; readonly min: number; readonly max: number }

const isWord = (character: string | undefined): boolean => character !== undefined && /^\w$/.test(character)
const atBoundary: Assertion = (text, at) => isWord(text[at - 1]) !== isWord(text[at])

/** What one character of a class or an escape is, by the engine's own word, kept for ASCII. */
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

/** Reads a pattern whose syntax was checked. */
class Reader {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  read(): Node {
    const nodes = [this.#sequence()]
    while (this.#source[this.#at] === "|") {
      this.#at++
      nodes.push(this.#sequence())
    }
    return nodes.length === 1 ? nodes[0]! : { _tag: "Choice", nodes }
  }

  #sequence(): Node {
    const nodes: Array<Node> = []
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

  #quantified(node: Node): Node {
    const found = this.#take(quantifier)
    if (found === null) return node
    const [, sign, from, range, to] = found
    if (sign === "*") return { _tag: "Repeat", node, min: 0, max: Infinity }
    if (sign === "+") return { _tag: "Repeat", node, min: 1, max: Infinity }
    if (sign === "?") return { _tag: "Repeat", node, min: 0, max: 1 }
    const min = Number(from)
    return { _tag: "Repeat", node, min, max: range === undefined ? min : to === "" ? Infinity : Number(to) }
  }

  #atom(): Node {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at)!)
    if (character === "(") {
      if (this.#take(group) === null || this.#source.startsWith("(?", this.#at - 1)) {
        throw new TypeError("look-around is not supported")
      }
      const node = this.read()
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

  #characters(source: string): Node {
    return { _tag: "Character", matches: classOf(source) }
  }

  #class(): string {
    const start = this.#at
    for (this.#at++; this.#source[this.#at] !== "]"; this.#at++) if (this.#source[this.#at] === "\\") this.#at++
    return this.#source.slice(start, ++this.#at)
  }

  #escaped(): Node {
    const [source] = this.#take(escape)!
    if (/^\\[1-9k]/.test(source)) throw new TypeError("references to groups are not supported")
    if (source === "\\b") return { _tag: "Assertion", holds: atBoundary, isStart: false }
    if (source === "\\B") return { _tag: "Assertion", holds: (text, at) => !atBoundary(text, at), isStart: false }
    return this.#characters(source)
  }
}

/** How many choices the engine has in a pattern; a choice that is repeated counts as many. */
const choices = (node: Node): number => {
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

const isAnchored = (node: Node): boolean =>
  node._tag === "Sequence"
    ? node.nodes.length > 0 && isAnchored(node.nodes[0]!)
    : node._tag === "Assertion" && node.isStart

type Instruction =
  | { readonly _tag: "Character"; readonly matches: Matches }
  | { readonly _tag: "Assertion"; readonly holds: Assertion }
  | { readonly _tag: "Jump"; to: ReadonlyArray<number> }
  | { readonly _tag: "Found" }

/**
 * How many characters the engine may look at for each character of the text, where the choices are few: it begins anew at each of them,
 * and `a{1000000000}` or a long word is looked at to its end every time.
 */
const span = (node: Node): number => {
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

// Longer patterns are not given to the engine.
const maxSource = 1000
const maxSpan = 256

/** Whether the engine takes linear time. Then it is the quicker one. */
const isPlain = (source: string, root: Node, anchored: boolean): boolean => {
  if (source.length > maxSource) return false
  const many = choices(root)
  return (many === 0 && (anchored || span(root) <= maxSpan)) || (many === 1 && anchored && span(root) <= maxSpan)
}

/** The most instructions of a pattern: each of a counted repetition is one of its own. */
const maxInstructions = 2000

const assemble = (root: Node): ReadonlyArray<Instruction> => {
  const program: Array<Instruction> = []
  const put = <I extends Instruction>(instruction: I): I => {
    if (program.length >= maxInstructions) throw new TypeError(`it has more than ${maxInstructions} steps`)
    program.push(instruction)
    return instruction
  }
  const jump = (...to: ReadonlyArray<number>) =>
    put<Extract<Instruction, { readonly _tag: "Jump" }>>({ _tag: "Jump", to })

  const add = (node: Node): void => {
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
        // What follows the last alternative is no alternative.
        const none = put<Instruction>({ _tag: "Assertion", holds: () => false })
        for (const end of ends) end.to = [program.length]
        return void none
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

/** Runs all alternatives at once: each character of the text is looked at once for each instruction at most. */
const run = (program: ReadonlyArray<Instruction>, anchored: boolean): Test => (text, work) => {
  const reached = new Int32Array(program.length).fill(-1)
  let current: Array<number> = []
  let next: Array<number> = []
  const stack: Array<number> = []

  /** Follows all that takes no character; `true` when the end of the pattern is reached. */
  const follow = (threads: Array<number>, from: number, at: number): boolean => {
    stack.push(from)
    for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
      if (reached[place] === at) continue
      reached[place] = at
      const instruction = program[place]!
      if (instruction._tag === "Found") return true
      if (instruction._tag === "Character") threads.push(place)
      else if (instruction._tag === "Jump") stack.push(...instruction.to)
      else if (instruction.holds(text, at)) stack.push(place + 1)
    }
    return false
  }

  for (let at = 0;;) {
    if ((!anchored || at === 0) && follow(current, 0, at)) return true
    if (at >= text.length || (anchored && current.length === 0)) return false
    work.spend(2 + current.length)
    const character = String.fromCodePoint(text.codePointAt(at)!)
    at += character.length
    next.length = 0
    for (const place of current) {
      const instruction = program[place] as Extract<Instruction, { readonly _tag: "Character" }>
      if (instruction.matches(character) && follow(next, place + 1, at)) return true
    }
    ;[current, next] = [next, current]
  }
}

/**
 * Compiles a pattern, in the dialect of `new RegExp(…, "u")`. Throws what is wrong with it. One that is `trusted` is given to the
 * engine where it cannot be run here.
 */
export const compile = (source: string, trusted: boolean): Test => {
  const native = new RegExp(source, "u")
  const engine = (steps: number): Test => (text, work) => {
    work.spend((text.length * steps) >> 6)
    try {
      return native.test(text)
    } catch (error) {
      // It is compiled when it is first used, and may be too large only then.
      throw new GivenUp(`A pattern cannot be run (${error instanceof Error ? error.message.slice(-64) : error})`)
    }
  }
  try {
    const root = new Reader(source).read()
    const anchored = isAnchored(root)
    return isPlain(source, root, anchored)
      ? engine(anchored && choices(root) === 0 ? 1 : span(root))
      : run(assemble(root), anchored)
  } catch (error) {
    if (trusted) return engine(1)
    throw error
  }
}
