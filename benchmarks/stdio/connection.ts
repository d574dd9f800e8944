/**
 * One peer under test, and the lines that go to and fro.
 */
import { type Child, start, stop } from "../lib/children.ts"
import { cpuTime, cpuTimeOf } from "../lib/machine.ts"
import { call, type Era, initialized, makeVerifier, opening } from "./wire.ts"

/** A burst of calls. Times are in milliseconds. */
export interface Burst {
  readonly calls: number
  readonly wall: number
  readonly driverCpu: number
  readonly serverCpu: number | undefined
}

/** How long a peer may say nothing while an answer is due, in milliseconds. */
const patience = 20_000

export class Connection {
  readonly child: Child
  readonly name: string
  readonly era: Era
  #rest = ""
  #lastId = 0
  #verify = makeVerifier()
  #onLines: (lines: ReadonlyArray<string>) => void = () => {}
  #ended: Error | undefined
  #onFailure: (error: Error) => void = () => {}

  constructor(name: string, era: Era, file: string, args?: ReadonlyArray<string>) {
    this.name = name
    this.era = era
    this.child = start(file, args)
    // One byte is one character, so a chunk is never cut within one; what we compare is ASCII.
    this.child.stdout.setEncoding("latin1")
    this.child.stdout.on("data", (chunk: string) => {
      const lines = (this.#rest + chunk).split("\n")
      this.#rest = lines.pop()!
      this.#onLines(lines)
    })
    this.child.stdout.once("close", () => {
      this.#ended = new Error(`${name} ended before it had answered`)
      this.#onFailure(this.#ended)
    })
  }

  /** Waits for what `body` resolves with; fails when the peer ends, or is silent for too long. */
  async #watched<A>(body: (succeed: (value: A) => void) => (lines: ReadonlyArray<string>) => void): Promise<A> {
    if (this.#ended !== undefined) throw this.#ended
    let heard = performance.now()
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<A>((resolve, reject) => {
        const onLines = body(resolve)
        this.#onFailure = reject
        this.#onLines = (lines) => {
          heard = performance.now()
          try {
            onLines(lines)
          } catch (error) {
            reject(error as Error)
          }
        }
        timer = setInterval(() => {
          if (performance.now() - heard > patience) reject(new Error(`${this.name} has been silent for ${patience} ms`))
        }, 1_000)
      })
    } finally {
      clearInterval(timer)
      this.#onLines = () => {}
      this.#onFailure = () => {}
    }
  }

  /** Sends the opening request of the era; resolves as soon as its answer is here, with the moment that it came at. */
  open(): Promise<number> {
    const id = ++this.#lastId
    return this.#watched<number>((succeed) => {
      this.child.stdin.write(opening(this.era, id))
      return (lines) => {
        const at = performance.now()
        for (const line of lines) {
          const message = JSON.parse(line)
          if (message.id !== id) continue
          if (message.result === undefined) throw new Error(`${this.name} refused the opening: ${line}`)
          if (this.era === "session") this.child.stdin.write(initialized)
          succeed(at)
        }
      }
    })
  }

  /** Keeps `inFlight` calls in flight for `duration` milliseconds, then waits for the last. Each answer is verified. */
  async burst(inFlight: number, duration: number): Promise<Burst> {
    const { era } = this
    const stdin = this.child.stdin
    const verify = this.#verify
    const due = new Set<number>()
    const serverBefore = cpuTimeOf(this.child.pid!)
    const driverBefore = cpuTime()
    const begin = performance.now()
    let calls = 0
    const ask = (many: number): void => {
      let out = ""
      for (let index = 0; index < many; index++) {
        const id = ++this.#lastId
        due.add(id)
        out += call(era, id)
      }
      stdin.write(out, "latin1")
    }
    const wall = await this.#watched<number>((succeed) => {
      ask(inFlight)
      return (lines) => {
        let answered = 0
        for (const line of lines) {
          if (!due.delete(verify(line))) throw new Error(`${this.name} answered what was not asked, or twice: ${line}`)
          answered++
        }
        calls += answered
        const elapsed = performance.now() - begin
        if (elapsed < duration) ask(answered)
        else if (due.size === 0) succeed(elapsed)
      }
    })
    const serverAfter = cpuTimeOf(this.child.pid!)
    return {
      calls,
      wall,
      driverCpu: cpuTime() - driverBefore,
      serverCpu: serverBefore === undefined || serverAfter === undefined ? undefined : serverAfter - serverBefore
    }
  }

  /** Closes the peer's stdin; answers whether it went by itself. */
  close(): Promise<boolean> {
    return stop(this.child)
  }
}
