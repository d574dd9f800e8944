/**
 * How clients treat the server under test: a table of scenarios, each a list of steps. A step fails when it does not
 * get as far as its name says, so that no scenario becomes harmless unnoticed. After the last step, or a failure, all
 * connections are closed at once.
 */
import { call, initialize, initialized, message, type RawClient, type Revision, type Session } from "./rawClient.ts"
import type { RawConnection } from "./rawConnection.ts"

export interface Scenario {
  readonly name: string
  /** How many sessions and streams a successful run has opened at least. */
  readonly sessions: number
  readonly streams: number
  /** Runs in one of this many rounds, or in each round if absent. For scenarios that need much memory or time. */
  readonly every?: number
  readonly steps: ReadonlyArray<Step>
}

type Step = (run: Run) => Promise<void>

/** One run of a scenario. */
class Run {
  readonly client: RawClient
  /** The newest connection; the steps use it. */
  connection: RawConnection
  /** The text read by the last `stream` step. */
  received = ""
  #session: Session | undefined
  #ssePath: string | undefined

  constructor(client: RawClient) {
    this.client = client
    this.connection = client.connect()
  }

  get session(): Session {
    if (this.#session === undefined) throw new Error("the scenario has not opened a session")
    return this.#session
  }

  set session(session: Session) {
    this.#session = session
  }

  get ssePath(): string {
    if (this.#ssePath === undefined) throw new Error("the scenario has not opened an SSE stream")
    return this.#ssePath
  }

  set ssePath(path: string) {
    this.#ssePath = path
  }
}

/** Runs a scenario. The caller closes the connections. */
export const runScenario = async ({ steps }: Scenario, client: RawClient): Promise<void> => {
  const run = new Run(client)
  for (const step of steps) await step(run)
}

// ---- Steps

const sessionRevisions: ReadonlyArray<Revision> = ["2025-03-26", "2025-06-18", "2025-11-25"]

/** A different revision in each round, unless one is given. */
const revisionOf = ({ client }: Run, revision: Revision | undefined): Revision =>
  revision ?? sessionRevisions[client.round % 3]!

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const pause = (millis: number): Step => () => sleep(millis)

/** Waits between 0 and 4 ms, so that the connection closes at different stages of the request's processing. */
const shortPause: Step = ({ client }) => sleep(client.round % 5)

/** Takes a new connection for the following steps. The previous one stays open. */
const connect: Step = async (run) => {
  run.connection = run.client.connect()
}

const closeConnection: Step = ({ client, connection }) => connection.close(client.closeMode)

const stopReading: Step = async ({ connection }) => connection.stopReading()

/** Writes text and waits until it is handed to the system; does not wait for a response. */
const write = (text: (run: Run) => string): Step => async (run) => {
  run.connection.write(text(run))
  await run.connection.flushed
}

const readUntil = (mark: string): Step => async ({ connection }) => {
  await connection.readUntil(mark)
}

const initializeOnly = (revision?: Revision): Step => async (run) => {
  run.session = await run.client.initialize(run.connection, revisionOf(run, revision))
}

const open = (revision?: Revision): Step => async (run) => {
  run.session = await run.client.open(run.connection, revisionOf(run, revision))
}

/** Posts a request and reads its response. */
const request = (body: object): Step => async ({ client, connection, session }) => {
  await client.request(connection, session, body)
}

/** Posts messages in one write, without waiting for a response. */
const post = (...bodies: ReadonlyArray<object>): Step =>
  write(({ client, session }) => bodies.map((body) => client.sessionPost(session, body)).join(""))

/** Posts a message whose response is a stream, and reads the stream up to `mark`. */
const stream = (body: object, mark: string): Step => async (run) => {
  run.received = await run.client.stream(run.connection, run.session, body, mark)
}

/** Does the same with several messages at once, each on a new connection. */
const streams = (mark: string, ...bodies: ReadonlyArray<object>): Step => async ({ client, session }) => {
  await Promise.all(bodies.map((body) => client.stream(client.connect(), session, body, mark)))
}

/** Opens the standalone stream of the session. */
const get: Step = ({ client, connection, session }) => client.get(connection, session)

/** Resumes the stream of the last `stream` step after the last event that was read. */
const resume: Step = ({ client, connection, received, session }) =>
  client.get(connection, session, /id: (\S+)/.exec(received)?.[1])

const deleteSession: Step = ({ client, connection, session }) => client.delete(connection, session)

const openSse: Step = async (run) => {
  run.ssePath = await run.client.openSse(run.connection)
}

/** Posts to the session of the SSE stream, on a new connection. */
const ssePost = (body: object): Step => ({ client, ssePath }) => client.ssePost(client.connect(), ssePath, body)

const statelessPost = (method: string, params: Readonly<Record<string, unknown>>): Step =>
  write(({ client }) => client.statelessPost(1, method, params))

const statelessStream = (tool: string, mark: string): Step => ({ client, connection }) =>
  client.statelessStream(connection, tool, mark)

const subscribe = (notifications: object): Step => ({ client, connection }) =>
  client.subscribe(connection, notifications)

/** Calls a tool whose result must be an input request. */
const statelessInputRequired = (tool: string): Step => async ({ client, connection }) => {
  const { body } = await client.statelessCall(connection, tool)
  if (!body.includes("input_required")) throw new Error(`the result is not an input request: ${body}`)
}

/** Reads a response and checks its status. */
const responseStatus = (expected: number): Step => async ({ connection }) => {
  const { status } = await connection.readResponse()
  if (status !== expected) throw new Error(`status ${status} instead of ${expected}`)
}

// ---- Data

const changing = "soak://changing"
const progress = `"method":"notifications/progress"`
const samplingRequest = `"method":"sampling/createMessage"`
const newest = "2025-11-25"

const handshake = ({ client }: Run): string => client.httpRequest("POST", "/mcp", {}, initialize(newest))

const scenario = (
  name: string,
  { every, sessions = 0, streams = 0 }: {
    readonly sessions?: number
    readonly streams?: number
    readonly every?: number
  },
  ...steps: ReadonlyArray<Step>
): Scenario => ({ name, sessions, streams, steps, ...(every === undefined ? undefined : { every }) })

const sessionOnly = { sessions: 1 }
const sessionAndStream = { sessions: 1, streams: 1 }
const streamOnly = { streams: 1 }

export const scenarios: ReadonlyArray<Scenario> = [
  scenario("session: used, then deleted", sessionOnly, open(), request(call(1, "echo")), deleteSession),
  scenario(
    "session: subscribed, then abandoned",
    sessionOnly,
    open(),
    request(message(1, "resources/subscribe", { uri: changing })),
    request(message(2, "logging/setLevel", { level: "debug" }))
  ),
  scenario("session: abandoned during a call", sessionOnly, open(), post(call(1, "slow"))),
  scenario(
    "session: abandoned during many calls at once",
    sessionOnly,
    open(newest),
    post(call(1, "slow"), call(2, "echo"), call(3, "echo"), call(4, "echo"), call(5, "echo")),
    shortPause
  ),
  scenario(
    "session: abandoned with a pending sampling request",
    sessionAndStream,
    open(),
    stream(call(1, "ask"), samplingRequest)
  ),
  scenario(
    "session: deleted with a pending sampling request",
    sessionAndStream,
    open(newest),
    stream(call(1, "ask"), samplingRequest),
    connect,
    deleteSession
  ),
  scenario(
    "session: deleted during a call and a GET stream",
    sessionAndStream,
    open(newest),
    connect,
    get,
    connect,
    post(call(1, "never")),
    connect,
    deleteSession
  ),
  scenario("session: notifications/initialized never sent", sessionOnly, initializeOnly()),
  scenario("session: initialize response never read", {}, stopReading, write(handshake), shortPause),
  scenario(
    "session: abandoned during a batch",
    sessionAndStream,
    open("2025-03-26"),
    stream([call(1, "count"), call(2, "slow"), initialized], progress)
  ),
  scenario("session: 2024-11-05, abandoned during a call", sessionAndStream, openSse, ssePost(call(1, "slow"))),
  scenario(
    "session: 2024-11-05, abandoned with a pending sampling request",
    sessionAndStream,
    openSse,
    ssePost(call(1, "ask")),
    readUntil(samplingRequest)
  ),

  scenario("stream: GET, cut", sessionAndStream, open(), connect, get),
  scenario(
    "stream: two GETs, cut after a notification",
    { sessions: 1, streams: 2 },
    open(newest),
    connect,
    get,
    connect,
    get,
    readUntil("notifications/tools/list_changed")
  ),
  scenario(
    "stream: POST, cut, resumed, cut again",
    { sessions: 1, streams: 2 },
    open(newest),
    stream(call(1, "count"), progress),
    closeConnection,
    connect,
    resume,
    readUntil(progress)
  ),
  scenario(
    "stream: three POSTs of one session, all cut",
    { sessions: 1, streams: 3 },
    open(),
    streams(progress, call(1, "count"), call(2, "count"), call(3, "count"))
  ),
  scenario(
    "stream: POST, closed by the server, never resumed",
    sessionAndStream,
    open(newest),
    stream(call(1, "poll"), "retry: 1000\n\n")
  ),
  scenario(
    "stream: GET, cut before the response",
    sessionOnly,
    open(newest),
    write(({ client, session }) => client.httpRequest("GET", "/mcp", { "mcp-session-id": session.id })),
    shortPause
  ),
  scenario("stream: stateless POST, cut", streamOnly, statelessStream("count", progress)),
  scenario("stream: subscriptions/listen, cut", streamOnly, subscribe({ toolsListChanged: true })),
  scenario(
    "stream: subscriptions/listen, cut before the response",
    {},
    statelessPost("subscriptions/listen", { notifications: { resourceSubscriptions: [changing] } }),
    shortPause
  ),
  scenario(
    "stream: subscriptions/listen, cut after a notification",
    streamOnly,
    subscribe({ toolsListChanged: true, resourceSubscriptions: [changing] }),
    readUntil("notifications/resources/updated")
  ),
  scenario(
    "stream: POST, never read",
    { sessions: 1, every: 40 },
    open(newest),
    stopReading,
    post(call(1, "flood")),
    pause(200)
  ),
  scenario(
    "stream: stateless POST, never read",
    { every: 40 },
    stopReading,
    statelessPost("tools/call", { name: "flood", arguments: {} }),
    pause(200)
  ),

  // Scenarios that open neither sessions nor streams.
  scenario(
    "stateless: call abandoned",
    {},
    statelessPost("tools/call", { name: "never", arguments: {} }),
    shortPause
  ),
  scenario("stateless: input request never answered", {}, statelessInputRequired("ask")),
  scenario("bytes: part of a head", {}, write((run) => handshake(run).slice(0, 1 + run.client.round % 60))),
  scenario(
    "bytes: part of a body",
    {},
    write((run) => handshake(run).slice(0, -1 - run.client.round % 60)),
    shortPause
  ),
  scenario(
    "bytes: none, or not HTTP",
    {},
    write(({ client }) => client.round % 2 === 0 ? "\x16\x03\x01 not HTTP at all\r\n\r\n" : "")
  ),
  scenario(
    "bytes: unknown session",
    {},
    write(({ client }) => client.sessionPost({ id: `${client.round}-unknown`, revision: newest }, call(1, "echo"))),
    responseStatus(404)
  )
]
