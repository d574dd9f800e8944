/**
 * The ways to treat a server. Each checks that it got as far as its name says, so that none of them becomes harmless unnoticed.
 * However one ends, its connections are cut at that moment.
 */
import { call, initialize, initialized, message, type Revision, type Visitor } from "./visitor.ts"

export interface Way {
  readonly name: string
  /** How many sessions and streams one visit has opened for sure when it is over. */
  readonly sessions: number
  readonly streams: number
  /** One in so many rounds; each, if absent. For what takes much of the machine. */
  readonly every?: number
  readonly visit: (visitor: Visitor) => Promise<void>
}

const revisions: ReadonlyArray<Revision> = ["2025-03-26", "2025-06-18", "2025-11-25"]

const old = ({ number }: Visitor): Revision => revisions[number % 3]!

const watched = "soak://watched"

const pause = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

/** What says that progress has come, and whose. */
const progress = `"method":"notifications/progress"`
const question = `"method":"sampling/createMessage"`

const ofSessions: ReadonlyArray<Way> = [
  {
    name: "session: used and deleted",
    sessions: 1,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire, old(visitor))
      await visitor.ask(wire, session, call(1, "echo"))
      await visitor.delete(wire, session)
    }
  },
  {
    name: "session: subscribed, then left alone",
    sessions: 1,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire, old(visitor))
      await visitor.ask(wire, session, message(1, "resources/subscribe", { uri: watched }))
      await visitor.ask(wire, session, message(2, "logging/setLevel", { level: "debug" }))
    }
  },
  {
    name: "session: left during a call",
    sessions: 1,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire, old(visitor))
      wire.write(visitor.post(session, call(1, "slow")))
      await wire.flushed
    }
  },
  {
    name: "session: left during many calls at once",
    sessions: 1,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire)
      wire.write([1, 2, 3, 4, 5].map((id) => visitor.post(session, call(id, id === 1 ? "slow" : "echo"))).join(""))
      await wire.flushed
      await pause(visitor.number % 5)
    }
  },
  {
    name: "session: left with a question open",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      await visitor.stream(wire, await visitor.open(wire, old(visitor)), call(1, "ask"), question)
    }
  },
  {
    name: "session: deleted with a question open",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire)
      await visitor.stream(wire, session, call(1, "ask"), question)
      await visitor.delete(visitor.connect(), session)
    }
  },
  {
    name: "session: deleted while it runs and listens",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire)
      await visitor.listen(visitor.connect(), session)
      wire.write(visitor.post(session, call(1, "never")))
      await wire.flushed
      await visitor.delete(visitor.connect(), session)
    }
  },
  {
    name: "session: never says initialized",
    sessions: 1,
    streams: 0,
    visit: async (visitor) => {
      await visitor.begin(visitor.connect(), old(visitor))
    }
  },
  {
    name: "session: does not read the answer to initialize",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      wire.ignore()
      wire.write(visitor.text("POST", "/mcp", {}, initialize("2025-11-25")))
      await wire.flushed
      await pause(visitor.number % 5)
    }
  },
  {
    name: "session: a batch that is not waited for",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire, "2025-03-26")
      const batch = [call(1, "count"), call(2, "slow"), initialized]
      await visitor.stream(wire, session, batch, progress)
    }
  },
  {
    name: "session: 2024-11-05, left during a call",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const path = await visitor.legacy(visitor.connect())
      await visitor.tell(visitor.connect(), path, call(1, "slow"))
    }
  },
  {
    name: "session: 2024-11-05, left with a question open",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const path = await visitor.legacy(wire)
      await visitor.tell(visitor.connect(), path, call(1, "ask"))
      await wire.until(question)
    }
  }
]

const ofStreams: ReadonlyArray<Way> = [
  {
    name: "stream: GET, cut",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire, old(visitor))
      await visitor.listen(visitor.connect(), session)
    }
  },
  {
    name: "stream: GET twice, cut after it was told something",
    sessions: 1,
    streams: 2,
    visit: async (visitor) => {
      const session = await visitor.open(visitor.connect())
      await visitor.listen(visitor.connect(), session)
      const wire = visitor.connect()
      await visitor.listen(wire, session)
      await wire.until("notifications/tools/list_changed")
    }
  },
  {
    name: "stream: POST, cut, resumed, cut again",
    sessions: 1,
    streams: 2,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire)
      const told = await visitor.stream(wire, session, call(1, "count"), progress)
      const last = /id: (\S+)/.exec(told)?.[1]
      await wire.leave(visitor.farewell)
      const again = visitor.connect()
      await visitor.listen(again, session, last)
      await again.until(progress)
    }
  },
  {
    name: "stream: three POSTs of one session, all cut",
    sessions: 1,
    streams: 3,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire, old(visitor))
      await Promise.all([1, 2, 3].map((id) => visitor.stream(visitor.connect(), session, call(id, "count"), progress)))
    }
  },
  {
    name: "stream: POST, let go by the server, never taken up again",
    sessions: 1,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      await visitor.stream(wire, await visitor.open(wire), call(1, "poll"), "retry: 1000\n\n")
    }
  },
  {
    name: "stream: GET, without waiting for it",
    sessions: 1,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire)
      wire.write(visitor.text("GET", "/mcp", { "mcp-session-id": session.id }))
      await wire.flushed
      await pause(visitor.number % 5)
    }
  },
  {
    name: "stream: POST of the request era, cut",
    sessions: 0,
    streams: 1,
    visit: (visitor) => visitor.aloneStream(visitor.connect(), "count", progress)
  },
  {
    name: "stream: subscriptions/listen, cut",
    sessions: 0,
    streams: 1,
    visit: (visitor) => visitor.subscribe(visitor.connect(), { toolsListChanged: true })
  },
  {
    name: "stream: subscriptions/listen, without waiting for it",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      wire.write(visitor.alone(1, "subscriptions/listen", { notifications: { resourceSubscriptions: [watched] } }))
      await wire.flushed
      await pause(visitor.number % 5)
    }
  },
  {
    name: "stream: subscriptions/listen, cut after it was told something",
    sessions: 0,
    streams: 1,
    visit: async (visitor) => {
      const wire = visitor.connect()
      await visitor.subscribe(wire, { toolsListChanged: true, resourceSubscriptions: [watched] })
      await wire.until("notifications/resources/updated")
    }
  },
  {
    name: "stream: POST, never read",
    sessions: 1,
    streams: 0,
    every: 40,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const session = await visitor.open(wire)
      wire.ignore()
      wire.write(visitor.post(session, call(1, "flood")))
      await pause(200)
    }
  },
  {
    name: "stream: POST of the request era, never read",
    sessions: 0,
    streams: 0,
    every: 40,
    visit: async (visitor) => {
      const wire = visitor.connect()
      wire.ignore()
      wire.write(visitor.alone(1, "tools/call", { name: "flood", arguments: {} }))
      await pause(200)
    }
  }
]

/** What is neither a session nor a stream, and must leave nothing either. */
const ofNothing: ReadonlyArray<Way> = [
  {
    name: "alone: a call that is not waited for",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      wire.write(visitor.alone(1, "tools/call", { name: "never", arguments: {} }))
      await wire.flushed
      await pause(visitor.number % 5)
    }
  },
  {
    name: "alone: a question that is not answered",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const { body } = await visitor.aloneCall(visitor.connect(), "ask")
      if (!body.includes("input_required")) throw new Error(`No question: ${body}`)
    }
  },
  {
    name: "bytes: half a head",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const text = visitor.text("POST", "/mcp", {}, initialize("2025-11-25"))
      wire.write(text.slice(0, 1 + visitor.number % 60))
      await wire.flushed
    }
  },
  {
    name: "bytes: half a body",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      const text = visitor.text("POST", "/mcp", {}, initialize("2025-11-25"))
      wire.write(text.slice(0, -1 - visitor.number % 60))
      await wire.flushed
      await pause(visitor.number % 5)
    }
  },
  {
    name: "bytes: none, and garbage",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      if (visitor.number % 2 === 0) wire.write("\x16\x03\x01 not HTTP at all\r\n\r\n")
      await wire.flushed
    }
  },
  {
    name: "bytes: a session that never was",
    sessions: 0,
    streams: 0,
    visit: async (visitor) => {
      const wire = visitor.connect()
      wire.write(visitor.post({ id: `${visitor.number}-never-was`, revision: "2025-11-25" }, call(1, "echo")))
      const { status } = await wire.answer()
      if (status !== 404) throw new Error(`${status}, not 404`)
    }
  }
]

export const ways: ReadonlyArray<Way> = [...ofSessions, ...ofStreams, ...ofNothing]
