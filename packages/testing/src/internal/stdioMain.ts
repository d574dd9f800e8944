/**
 * The program of a rude server over stdio: `node stdioMain.js <script> <journal>`.
 */
import * as Effect from "effect/Effect"
import { appendFileSync } from "node:fs"
import type { Script } from "../Script.ts"
import { garble, type Json } from "./garble.ts"
import { Mind, type Voice } from "./mind.ts"
import { type Faults, kindOf, Rules } from "./rules.ts"

const [script, journal] = process.argv.slice(2) as [string, string]
const { faults: rules, ...spoken } = JSON.parse(script) as Script
const note = (line: object): void => appendFileSync(journal, `${JSON.stringify(line)}\n`)

/** Writes one text after the other, so that none gets into another that is written byte by byte. */
class Output {
  #last: Promise<void> = Promise.resolve()

  write(bytes: Uint8Array, drip: boolean): Promise<void> {
    this.#last = this.#after(this.#last, bytes, drip)
    return this.#last
  }

  async #after(last: Promise<void>, bytes: Uint8Array, drip: boolean): Promise<void> {
    await last
    const step = drip ? 1 : Math.max(1, bytes.length)
    for (let at = 0; at < bytes.length; at += step) await this.#put(bytes.subarray(at, at + step))
  }

  #put(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => process.stdout.write(bytes, () => setImmediate(resolve)))
  }
}

const output = new Output()
const mind = new Mind({ ...spoken, faults: [] }, note)
const counted = new Rules(rules)
const asked = new Map<unknown, (answer: Effect.Effect<Json>) => void>()
let lastId: unknown = undefined

/** All texts that are said about one request: an exchange's worth of bytes. */
class Sayings {
  readonly #faults: Faults
  readonly #held: Array<string> = []
  #left: number
  #muted: boolean

  constructor(faults: Faults) {
    this.#faults = faults
    this.#left = faults.get("Cut")?.after ?? Infinity
    this.#muted = faults.get("Silence")?.after === "head"
  }

  say(text: string): void {
    if (this.#faults.has("Backwards")) this.#held.unshift(text)
    else this.#write(text)
  }

  end(): void {
    for (const text of this.#held.splice(0)) this.#write(text)
  }

  #write(text: string): void {
    if (this.#muted) return
    const spelling = this.#faults.get("Text")
    const line = `${spelling?.bom === true ? "\ufeff" : ""}${text}${spelling?.newline === "\r\n" ? "\r\n" : "\n"}`
    const bytes = new TextEncoder().encode(this.#faults.has("Twice") ? line + line : line)
    const part = bytes.subarray(0, this.#left)
    this.#left -= part.length
    this.#muted = this.#left === 0 || this.#faults.get("Silence")?.after === "event"
    const written = output.write(part, this.#faults.has("Drip"))
    if (this.#left === 0) void written.then(() => process.exit(1))
  }
}

const answer = (request: Json, faults: Faults): Effect.Effect<void> =>
  Effect.gen(function*() {
    const sayings = new Sayings(faults)
    const voice: Voice = {
      say: (message) => sayings.say(JSON.stringify(message)),
      ask: (method, params) =>
        Effect.callback<Json>((resume) => {
          const id = `rude-${asked.size}`
          asked.set(id, resume)
          sayings.say(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
        })
    }
    const other = lastId
    lastId = request["id"]
    const restart = faults.get("Restart")
    if (restart?.done === false) process.exit(restart.code)
    const said = yield* mind.answer(request, voice)
    if (restart !== undefined) process.exit(restart.code)
    const { params } = request as { readonly params?: { readonly _meta?: { readonly progressToken?: unknown } } }
    for (const text of garble(said, faults, { other, token: params?._meta?.progressToken })) sayings.say(text)
    sayings.end()
  })

const take = (line: string): void => {
  let message: Json
  try {
    message = JSON.parse(line) as Json
  } catch {
    return
  }
  const faults = counted.next(kindOf(message))
  if (faults.has("Deaf")) process.stdin.pause()
  if (faults.has("Deaf") || faults.get("Silence")?.after === "request") return
  if (message["method"] === undefined) {
    asked.get(message["id"])?.(Effect.succeed(message))
    return
  }
  if (message["id"] === undefined) {
    const restart = faults.get("Restart") ?? (faults.has("Cut") ? { code: 1 } : undefined)
    if (restart !== undefined) process.exit(restart.code)
    return
  }
  const handled = answer(message, faults)
  const delay = faults.get("Delay")
  Effect.runFork(delay === undefined ? handled : Effect.delay(handled, delay.ms))
}

note({ pid: process.pid })
let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (text: string) => {
  const lines = (rest + text).split("\n")
  rest = lines.pop() ?? ""
  for (const line of lines) take(line)
})
process.stdin.on("end", () => process.exit(0))
// Nobody reads any more.
process.stdout.on("error", () => process.exit(0))
