/**
 * Visits a server, many at a time, one way after the other.
 */
import { Visitor } from "./visitor.ts"
import { type Way, ways } from "./ways.ts"
import { Wire } from "./wire.ts"

/** How many visitors there are at a time. */
const crowd = 100

export class Load {
  sessions = 0
  streams = 0
  /** What did not go as it should, by its first words, and how often. */
  readonly wrong = new Map<string, number>()
  readonly visits = new Map<Way, number>(ways.map((way) => [way, 0]))
  readonly #port: number
  #users = 0
  #round = 0
  #next = 0

  constructor(port: number) {
    this.#port = port
  }

  /** Comes with more connections than there will be at any time, and goes: Node keeps what it needs for one for the next. */
  async crowd(): Promise<void> {
    const wires = Array.from({ length: 4 * crowd }, () => new Wire(this.#port))
    for (const wire of wires) wire.write("POST /mcp")
    await Promise.all(wires.map(({ flushed }) => flushed))
    await Promise.all(wires.map((wire) => wire.leave("reset")))
  }

  /** Visits until there have been so many sessions and so many streams. */
  async run(sessions: number, streams: number): Promise<void> {
    const visitor = async (): Promise<void> => {
      while (this.sessions < sessions || this.streams < streams) await this.#visit(this.#way())
    }
    await Promise.all(Array.from({ length: crowd }, visitor))
  }

  #way(): Way {
    for (;;) {
      if (this.#next === ways.length) {
        this.#next = 0
        this.#round++
      }
      const way = ways[this.#next++]!
      if (this.#round % (way.every ?? 1) === 0) return way
    }
  }

  async #visit(way: Way): Promise<void> {
    const visitor = new Visitor(this.#port, `user-${++this.#users}`, this.#round)
    // Counted at once, so that no more come than are wanted.
    this.sessions += way.sessions
    this.streams += way.streams
    this.visits.set(way, this.visits.get(way)! + 1)
    try {
      await way.visit(visitor)
    } catch (error) {
      const what = `${way.name}: ${error instanceof Error ? error.message : error}`.slice(0, 200)
      this.wrong.set(what, (this.wrong.get(what) ?? 0) + 1)
    }
    await visitor.leave()
  }
}
