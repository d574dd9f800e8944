/**
 * What a body does to the world, and sees of it: over all its runs, in whatever process. What a process does once it was killed has
 * not been.
 */
import * as Latch from "effect/Latch"

/** What was done under one name. */
export interface Act {
  readonly keys: Set<string>
  begun: number
  /** How often it came to its end, and how often to a good one. */
  ended: number
  good: number
  /** When it last failed, in milliseconds. */
  failed: number
}

/** See the module's text. */
export class World {
  readonly acts = new Map<string, Act>()
  /** What each part gave to the body. */
  readonly seen = new Map<string, string>()
  readonly begun = new Map<string, number>()
  /** What was said to undo, and what was undone, in the order in which it was first. */
  readonly registered = new Set<string>()
  readonly undone: Array<string> = []
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

  /** It is killed. */
  die(): void {
    this.dead = true
    this.died.openUnsafe()
  }

  problem(text: string): void {
    if (!this.dead) this.world.problems.push(text)
  }

  /** A step begins. */
  begins(name: string, key: string, now: number, pause = 0): void {
    if (this.dead) return
    const act = this.world.act(name)
    act.keys.add(key)
    act.begun++
    if (now < act.failed + pause * 1000) this.problem(`${name} is tried again too early`)
  }

  /** It ends, as it has to. */
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

  /** A part of the body gives this: the same in each run. */
  saw(name: string, value: string): void {
    if (this.dead) return
    const first = this.world.seen.get(name)
    if (first === undefined) this.world.seen.set(name, value)
    else if (first !== value) this.problem(`${name} gave ${first}, and then ${value}`)
  }

  /** A sleep begins, for the first time or again. */
  sleeps(name: string, now: number): void {
    if (!this.dead && !this.world.begun.has(name)) this.world.begun.set(name, now)
  }

  wakes(name: string, now: number, seconds: number): void {
    if (now < (this.world.begun.get(name) ?? now) + seconds * 1000) this.problem(`${name} woke too early`)
  }

  registers(name: string): void {
    if (!this.dead) this.world.registered.add(name)
  }

  undoes(name: string): void {
    if (!this.dead && !this.world.undone.includes(name)) this.world.undone.push(name)
  }
}
