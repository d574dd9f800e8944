/**
 * The clients of a walk, each with one session at a time. They call tools, answer questions, subscribe, report changes, and
 * end their sessions, at random.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Nodes } from "./nodes.ts"
import { Records } from "./records.ts"
import { type Level, levels, Session } from "./session.ts"

/** Milliseconds between two actions of a session, at most. */
const pace = 2_000

/** How many resources a session subscribes to. The last one is subscribed to and unsubscribed from all the time. */
const resources = 3

type Random = () => number

export const pick = <A>(all: ReadonlyArray<A>, random: Random): A => all[Math.floor(random() * all.length)]!

export class Clients {
  readonly records = new Records()
  /** The open sessions, one for each client. */
  readonly sessions: Array<Session> = []
  /** The sessions that were ended, by id. */
  readonly ended: Array<Session> = []
  readonly #nodes: Nodes
  #isOver = false
  #calls = 0
  #opened = 0

  constructor(nodes: Nodes) {
    this.#nodes = nodes
  }

  /** The key of a call, which no other call has. */
  newKey(session: Session): string {
    return `${session.name}.${++this.#calls}`
  }

  stop(): void {
    this.#isOver = true
  }

  async #open(index: number): Promise<void> {
    const session = new Session(`${index}.${++this.#opened}`, this.#nodes.port, this.records)
    await session.open()
    for (let n = 0; n < resources; n++) await session.subscribe(session.uri(n), true)
    this.sessions[index] = session
  }

  /** Opens a session for a client, and acts until `stop`. */
  async run(index: number, random: Random): Promise<void> {
    await this.#open(index)
    while (!this.#isOver) {
      await sleep(random() * pace)
      await this.#act(index, random)
    }
  }

  async #act(index: number, random: Random): Promise<void> {
    const session = this.sessions[index]!
    const key = this.newKey(session)
    const action = random()
    if (action < 0.2) return session.call("echo", { key }, key)
    if (action < 0.4) return session.call("ask", { key }, `${key} ${key.toUpperCase()}`)
    if (action < 0.5) {
      return session.call("steps", { key, milliseconds: Math.floor(random() * 1_000) }, key, { leaves: random() < 0.5 })
    }
    if (action < 0.75) return this.#touch(session, random)
    if (action < 0.8) return session.leave()
    if (action < 0.85) return void await session.setLevel(pick(Object.keys(levels) as Array<Level>, random))
    if (action < 0.9) return this.#log(session)
    if (action < 0.97) return this.#toggle(session)
    if (session.isQuiet) return this.#replace(index)
  }

  /** Reports a change of a resource that any session has subscribed to. */
  async #touch(session: Session, random: Random): Promise<void> {
    const other = pick(this.sessions.filter((one) => one !== undefined && !one.isOver), random)
    const uri = other.uri(Math.floor(random() * resources))
    const { records } = this
    if (other.subscriptions.get(uri) !== true || records.touches.has(uri)) return
    const touch = { uri, from: records.now, isAcknowledged: false }
    records.touches.set(uri, touch)
    const { text } = await session.request("tools/call", { name: "touch", arguments: { uri } })
    if (text !== undefined) touch.isAcknowledged = true
    // Whether it was reported is unknown.
    else if (records.touches.get(uri) === touch) records.touches.delete(uri)
  }

  async #log(session: Session): Promise<void> {
    const { level } = session
    const from = this.records.now
    const { logs, text } = await session.request("tools/call", { name: "log", arguments: {} })
    if (text === undefined || level === undefined) return
    if (logs !== (levels[level] ? 1 : 0)) this.records.unexpected("old levels", from)
  }

  async #toggle(session: Session): Promise<void> {
    const uri = session.uri(resources - 1)
    if (this.records.touches.has(uri)) return
    await session.subscribe(uri, session.subscriptions.get(uri) === false)
  }

  /** Ends the session of a client, and opens another one. */
  async #replace(index: number): Promise<void> {
    const session = this.sessions[index]!
    await session.end()
    this.ended.push(session)
    const from = this.records.now
    const node = pick([...this.#nodes.running], Math.random)
    const status = await session.statusAt(node.process.port)
    if (status === 200) this.records.unexpected("ended sessions that were served", from)
    await this.#open(index)
  }
}
