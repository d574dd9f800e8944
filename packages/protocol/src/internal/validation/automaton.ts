/**
 * Nondeterministic automata (Thompson) for regular expressions. They follow all alternatives at once, and read each
 * character of a text at most once per instruction.
 */
import type { ValidationState } from "./validationState.ts"

/** Whether a text contains a match of a pattern. */
export type Test = (text: string, state: ValidationState) => boolean

export type Matches = (character: string) => boolean
export type Assertion = (text: string, at: number) => boolean

/** A part of a pattern. Its size is the number of instructions of its automaton. */
export type PatternNode =
  & { readonly size: number }
  & (
    | {
      readonly _tag: "Character"
      readonly matches: Matches
      /** Whether it is a class that may match surrogate pairs. */
      readonly isWide: boolean
    }
    | { readonly _tag: "Assertion"; readonly holds: Assertion; readonly isStart: boolean }
    | { readonly _tag: "Sequence"; readonly nodes: ReadonlyArray<PatternNode> }
    | { readonly _tag: "Choice"; readonly nodes: ReadonlyArray<PatternNode> }
    | { readonly _tag: "Repeat"; readonly node: PatternNode; readonly min: number; readonly max: number }
  )

type Instruction =
  | { readonly _tag: "Character"; readonly matches: Matches }
  | { readonly _tag: "Assertion"; readonly holds: Assertion }
  | { readonly _tag: "Jump"; to: ReadonlyArray<number> }
  | { readonly _tag: "Found" }

/** The most instructions of an automaton. Each round of a counted repetition has its own. */
export const maxInstructions = 2000

/** Compiles a pattern to the instructions of its automaton. */
export const assemble = (root: PatternNode): ReadonlyArray<Instruction> => {
  const program: Array<Instruction> = []
  const put = <I extends Instruction>(instruction: I): I => {
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
        // An empty group can be repeated a billion times.
        if (node.size === 0) return
        for (let count = 0; count < node.min; count++) add(node.node)
        if (node.max === Infinity) {
          const at = program.length
          const start = jump()
          add(node.node)
          jump(at)
          start.to = [at + 1, program.length]
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

// A test of a character outside of ASCII takes as long as several visits of instructions: its result is not cached.
const visitsOfOther = 8

/** Where an automaton continues after a pause. */
interface Position {
  readonly at: number
  /** The instructions that read the character at the position. */
  readonly current: Array<number>
}

/** Runs an automaton. Each character of the text is read at most once per instruction. */
export const run = (program: ReadonlyArray<Instruction>, anchored: boolean): Test => {
  // The last step in which an instruction was reached. Each step ends before another text is read, so that all texts
  // can share this.
  const reached = new Float64Array(program.length)
  const stack: Array<number> = []
  let step = 0
  let visits = 0

  /** Follows all instructions that read no character. Returns whether the end of the pattern is reached. */
  const follow = (threads: Array<number>, from: number, text: string, at: number): boolean => {
    stack.push(from)
    for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
      visits++
      if (reached[index] === step) continue
      reached[index] = step
      const instruction = program[index]!
      if (instruction._tag === "Found") {
        stack.length = 0
        return true
      }
      if (instruction._tag === "Character") threads.push(index)
      else if (instruction._tag === "Jump") { for (const to of instruction.to) stack.push(to) }
      else if (instruction.holds(text, at)) stack.push(index + 1)
    }
    return false
  }

  return (text, state) => {
    let at = 0
    let current: Array<number> = []
    let next: Array<number> = []
    visits = 0
    if (state.isResuming) ({ at, current } = state.resume<Position>())
    else {
      step++
      const isFound = follow(current, 0, text, at)
      state.count(visits >> 1)
      if (isFound) return true
    }
    try {
      while (at < text.length && !(anchored && current.length === 0)) {
        state.spend(2)
        const code = text.codePointAt(at)!
        const character = String.fromCodePoint(code)
        at += character.length
        next.length = 0
        step++
        visits = code < 128 ? current.length : current.length * visitsOfOther
        let isFound = false
        for (const index of current) {
          const instruction = program[index] as Extract<Instruction, { readonly _tag: "Character" }>
          if (instruction.matches(character) && follow(next, index + 1, text, at)) {
            isFound = true
            break
          }
        }
        ;[current, next] = [next, current]
        isFound ||= !anchored && follow(current, 0, text, at)
        state.count(visits >> 1)
        if (isFound) return true
      }
    } catch (error) {
      throw state.save(error, { at, current } satisfies Position)
    }
    return false
  }
}
