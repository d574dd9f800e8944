/**
 * The effects of a handler on the outside world, over all its runs, in all processes. Effects of a process after its
 * kill do not count.
 */
import * as Latch from "effect/Latch"

/** The effects under one name. */
export interface Act {
  readonly keys: Set<string>
  begun: number
  /** How often it ended, and how often with success. */
  ended: number
  good: number
  /** When it last failed, in milliseconds. */
  failed: number
}

/** The outside world of one program. */
export class World {
  readonly acts = new Map<string, Act>()
  /** The value that each part returned to the handler. */
  readonly seen = new Map<string, string>()
  readonly begun = new Map<string, number>()
  /** The compensations that were added, and those that ran, each in the order of their first time. */
  readonly registered = new Set<string>()
  readonly undone: Array<string> = []
  /** The reasons with which compensations began, in order. */
  readonly reasons: Array<string> = []
  readonly problems: Array<string> = []

  act(name: string): Act {
    const found = this.acts.get(name) ?? { keys: new Set(), begun: 0, ended: 0, good: 0, failed: -Infinity }
    this.acts.set(name, found)
    return found
  }
}

/** The life of a process. */
export class Life {
  readonly world: World
  readonly died = Latch.makeUnsafe()
  dead = false

  constructor(world: World) {
    this.world = world
  }

  /** Kills it. A failure of this moment may not be recorded yet: then the attempt runs again, without a pause. */
  die(now: number): void {
    this.dead = true
    for (const act of this.world.acts.values()) if (act.failed === now) act.failed = -Infinity
    this.died.openUnsafe()
  }

  problem(text: string): void {
    if (!this.dead) this.world.problems.push(text)
  }

  /** A step starts. */
  begins(name: string, key: string, now: number, pause = 0): void {
    if (this.dead) return
    const act = this.world.act(name)
    act.keys.add(key)
    act.begun++
    if (now < act.failed + pause * 1000) this.problem(`${name} is tried again too early`)
  }

  /** The step ends as generated. */
  ends(name: string, good: boolean, now: number): void {
    if (this.dead) return
    const act = this.world.act(name)
    act.ended++
    if (good) act.good++
    else act.failed = now
  }

  /** How often a step has ended. */
  ended(name: string): number {
    return this.world.acts.get(name)?.ended ?? 0
  }

  /** A part of the handler returns this value: the same in each run. */
  saw(name: string, value: string): void {
    if (this.dead) return
    const first = this.world.seen.get(name)
    if (first === undefined) this.world.seen.set(name, value)
    else if (first !== value) this.problem(`${name} gave ${first}, and then ${value}`)
  }

  /** A sleep starts, for the first time or again. */
  sleeps(name: string, now: number): void {
    if (!this.dead && !this.world.begun.has(name)) this.world.begun.set(name, now)
  }

  wakes(name: string, now: number, seconds: number): void {
    if (now < (this.world.begun.get(name) ?? now) + seconds * 1000) this.problem(`${name} woke too early`)
  }

  registers(name: string): void {
    if (!this.dead) this.world.registered.add(name)
  }

  beginsToUndo(reason: string): void {
    if (!this.dead) this.world.reasons.push(reason)
  }

  undoes(name: string): void {
    if (!this.dead && !this.world.undone.includes(name)) this.world.undone.push(name)
  }
}
