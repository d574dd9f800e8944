/**
 * The source of a server: its sessions, requests, streams and subscriptions, as `McpServer.inspectWith` returns them.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import type { RequestInfo, ServerInfo, SessionInfo } from "@skein/runtime/Inspect"
import type { McpServer } from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import type { Node, Page, Query, Source } from "../ConsoleSource.ts"
import { defined } from "./tree.ts"

const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** The name and the version of a client, as it sent them. */
const clientName = (info: JsonRpc.JsonObject | undefined): string | undefined => {
  const name = text(info?.["title"]) ?? text(info?.["name"])
  const version = text(info?.["version"])
  return name === undefined || version === undefined ? name : `${name} ${version}`
}

// The action of a client that a request of the server waits for, by its method.
const waiting: Readonly<Record<string, string>> = {
  "elicitation/create": "the answer of a person",
  "sampling/createMessage": "a language model of the client",
  "roots/list": "the roots of the client",
  ping: "a ping of the client"
}

const subscriptionNodes = (
  uris: ReadonlyArray<string>,
  prefix: string,
  parent: string,
  principal: string | undefined,
  { limit }: Query
): ReadonlyArray<Node> =>
  uris.slice(0, limit).map((uri) => ({
    id: `${prefix}.${uri}`,
    parent,
    kind: "subscription",
    label: uri,
    state: "waiting",
    waitsFor: "updates of the resource",
    principal
  }))

const count = (number: number): string => number.toLocaleString("en")

/** The work of a server in a line: most requests end before a snapshot could contain them. */
export const summaryOf = (
  { failures, requests }: Pick<ServerInfo["tally"], "failures" | "requests">,
  rate: number | undefined
): string | undefined => {
  if (requests === 0) return undefined
  const perSecond = rate === undefined ? "" : `${count(rate)} requests per second, `
  return `${perSecond}${count(requests)} answered, ${count(failures)} failed`
}

// The reads over which requests per second are counted, and the age of the oldest of them in milliseconds.
const rateReads = 5
const maxRateAge = 60_000

const groupNode = (id: string, label: string): Node => ({
  id,
  parent: "server",
  kind: "group",
  label,
  state: "running"
})

/** The source of one server. The arguments of a request are cut off after `maxPayloadChars`. */
export const makeServerSource = (server: McpServer["Service"], maxPayloadChars: number): Source => {
  // Converts the monotonic clock of the snapshots to Unix time. Once, so that the beginning of a row does not change.
  let offset: number | undefined
  // The last reads, for the requests per second since the oldest of them.
  const reads: Array<{ readonly at: number; readonly requests: number }> = []

  /** The requests per second over the last reads, rounded. Undefined while there are none. */
  const rateOf = ({ now, tally: { requests } }: ServerInfo): number | undefined => {
    while (reads.length > 0 && (reads.length > rateReads || now - reads[0]!.at > maxRateAge)) reads.shift()
    const [oldest] = reads
    reads.push({ at: now, requests })
    if (oldest === undefined || requests === oldest.requests) return undefined
    const rate = (requests - oldest.requests) * 1_000 / Math.max(1, now - oldest.at)
    return rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate)
  }

  /** A request of the server that waits for the client. */
  const questionNode = (call: SessionInfo["calls"][number], session: SessionInfo, parent: string): Node => ({
    id: `c${session.key}.${call.id}`,
    parent,
    kind: "question",
    label: call.method,
    state: "waiting",
    waitsFor: waiting[call.method] ?? "the response of the client",
    since: call.startedAt + offset!,
    principal: session.principal,
    details: { "request id": call.id }
  })

  // `session` is undefined for a stateless request over HTTP.
  const requestNodes = (
    info: RequestInfo,
    parent: string,
    session: SessionInfo | undefined,
    query: Query
  ): ReadonlyArray<Node> => {
    const since = info.startedAt + offset!
    const calls = session?.calls.filter(({ about }) => about === info.id) ?? []
    const { subscription } = info
    const isListening = info.method === "subscriptions/listen"
    const id = `r${info.key}`
    const label = info.target === undefined ? info.method : `${info.method} ${info.target}`
    // The span of the request itself, which telemetry makes, says nothing about its handler.
    const span = info.span === label || info.span === info.method ? undefined : info.span
    const first = calls[0]
    const node: Node = {
      id,
      parent,
      kind: isListening ? "subscription" : "request",
      label,
      state: info.cancelled ? "stopping" : calls.length > 0 || isListening ? "waiting" : "running",
      waitsFor: info.cancelled
        ? "its handler to stop"
        : first !== undefined
        ? waiting[first.method] ?? `${first.method} of the client`
        : isListening
        ? "changes"
        : span === undefined
        ? undefined
        : `span ${span}`,
      since,
      progress: info.progress,
      principal: info.principal,
      traceId: info.traceId,
      canInterrupt: !info.cancelled,
      details: defined({
        "request id": String(info.id),
        revision: info.revision,
        client: session === undefined ? clientName(info.client) : undefined,
        span,
        "progress message": info.progress?.message,
        "streams its response": info.streaming ? true : undefined,
        lists: subscription === undefined ? undefined : subscription.lists.join(", ") || "none",
        resources: subscription === undefined ? undefined : subscription.resources.length,
        arguments: info.params === undefined ? undefined : clipJson(info.params, maxPayloadChars)
      })
    }
    return [
      node,
      ...calls.map((call) => ({ ...questionNode(call, session!, id), traceId: info.traceId })),
      ...(info.steps ?? []).map((step): Node => ({
        id: `${id}.step.${step.name}`,
        parent: id,
        kind: "step",
        label: step.name,
        state: "running",
        waitsFor: step.span === undefined || step.name.split("/", 1)[0] === step.span ? undefined : `span ${step.span}`,
        since: step.startedAt + offset!,
        principal: info.principal,
        traceId: info.traceId,
        details: { attempt: step.attempt }
      })),
      ...subscriptionNodes(subscription?.resources ?? [], id, id, info.principal, query)
    ]
  }

  const sessionNodes = (info: SessionInfo, query: Query): ReadonlyArray<Node> => {
    const id = `s${info.key}`
    const { connection } = info
    const requests = info.requests.flatMap((request) => requestNodes(request, id, info, query))
    // Requests of the server that no handler of this session sent.
    const others = info.calls.filter(({ about }) => !info.requests.some((request) => request.id === about))
    const isBusy = requests.length > 0 || info.queued > 0 || others.length > 0
    const streams = connection?.streams ?? []
    // The stream of a batch belongs to several requests, and that of a queued request to none that runs.
    const parentOf = (about: ReadonlyArray<JsonRpc.Id>): string | undefined => {
      const request = about.length === 1 ? info.requests.find((one) => one.id === about[0]) : undefined
      return request === undefined ? undefined : `r${request.key}`
    }
    const client = clientName(info.info)
    const stateless = info.revision === undefined && info.requests[0]?.client
    return [
      {
        id,
        parent: "server",
        kind: "session",
        label: client ?? (stateless ? clientName(stateless) : undefined) ?? "a client without a name",
        state: isBusy ? "running" : "idle",
        waitsFor: isBusy ? undefined : "messages",
        since: connection === undefined ? undefined : connection.openedAt + offset!,
        principal: info.principal,
        canInterrupt: true,
        details: defined({
          transport: connection?.transport ?? "a connection of its own",
          revision: info.revision ?? (info.requests[0]?.revision ?? "not negotiated"),
          requests: info.requests.length,
          queued: info.queued === 0 ? undefined : info.queued,
          streams: connection === undefined ? undefined : streams.length,
          "idle since": connection === undefined || isBusy
            ? undefined
            : new Date(connection.usedAt + offset!).toISOString().slice(0, 19) + "Z"
        })
      },
      ...requests,
      ...info.queuedRequests.map((queued): Node => ({
        id: `q${info.key}.${JSON.stringify(queued.id)}`,
        parent: id,
        kind: "request",
        label: queued.target === undefined ? queued.method : `${queued.method} ${queued.target}`,
        state: "queued",
        waitsFor: "another request to end (maxInFlightRequests)",
        principal: info.principal,
        details: { "request id": String(queued.id) }
      })),
      ...others.map((call) => questionNode(call, info, id)),
      ...streams.map(({ about, connected, kind }, index): Node => ({
        id: `e${info.key}.${kind === "listen" ? "listen" : about.join(",") || index}`,
        parent: parentOf(about) ?? id,
        kind: "stream",
        label: kind === "listen"
          ? "stream for notifications"
          : parentOf(about) === undefined
          ? `stream of the responses to ${about.join(", ")}`
          : "stream of the response",
        state: connected ? "running" : "waiting",
        waitsFor: connected ? undefined : "the client to resume it",
        principal: info.principal
      })),
      ...subscriptionNodes(info.subscriptions, `u${info.key}`, id, info.principal, query)
    ]
  }

  const nodesOf = (info: ServerInfo, at: number, query: Query): Page => {
    offset ??= at - info.now
    const busy = info.sessions.filter(({ requests }) => requests.length > 0).length
    const tasks = info.tasks.length
    const { failures, last, requests } = info.tally
    const rate = rateOf(info)
    const nodes: Array<Node> = [{
      id: "server",
      kind: "server",
      label: `${info.name} ${info.version}`,
      state: "running",
      summary: summaryOf(info.tally, rate),
      details: defined({
        "requests answered": requests,
        "requests failed": failures,
        "requests per second": rate,
        sessions: info.sessions.length,
        "busy sessions": busy,
        "stateless requests": info.requests.length,
        "long-lived streams": info.streams,
        "tasks that run here": tasks
      })
    }]
    /** The parents of nodes that are left out, with the numbers of all their children. */
    const incomplete = new Map<string, number>()
    const add = (parent: string, total: number, more: ReadonlyArray<Node>): void => {
      if (nodes.length + more.length <= query.maxRows) nodes.push(...more)
      else incomplete.set(parent, total)
    }
    if (info.requests.length > 0) {
      nodes.push(groupNode("stateless", "Stateless requests"))
      for (const request of info.requests) {
        add("stateless", info.requests.length, requestNodes(request, "stateless", undefined, query))
      }
    }
    if (last.length > 0) {
      nodes.push({ ...groupNode("failures", "Last failures"), summary: `${count(failures)} since the start` })
      add(
        "failures",
        last.length,
        last.map(({ at, error, method, principal, target }, place): Node => ({
          // The number of a failure since the start.
          id: `f${failures - place}`,
          parent: "failures",
          kind: "failure",
          label: target === undefined ? method : `${method} ${target}`,
          state: "failed",
          summary: error,
          since: at + offset!,
          principal
        }))
      )
    }
    if (tasks > 0) {
      nodes.push(groupNode("tasks", "Tasks that run in this process"))
      for (const task of info.tasks) {
        const [node, ...steps] = requestNodes(task, "tasks", undefined, query)
        const label = task.target ?? node!.label
        // The span of a run says nothing about its handler.
        const isRun = task.span === `task ${label}`
        const step = steps[0]?.label
        const waitsFor = step === undefined ? isRun ? undefined : node!.waitsFor : `step ${step}`
        add("tasks", tasks, [{ ...node!, kind: "task", label, waitsFor, canInterrupt: false }, ...steps])
      }
    }
    for (const session of info.sessions) add("server", info.sessions.length, sessionNodes(session, query))
    return {
      nodes: incomplete.size === 0 ? nodes : nodes.map((node) => {
        const total = incomplete.get(node.id)
        return total === undefined ? node : { ...node, more: { total } }
      })
    }
  }

  return {
    name: "server",
    read: (query) =>
      Effect.clockWith((clock) =>
        Effect.map(
          server.inspectWith({ params: query.showPayloads }),
          (info) => nodesOf(info, clock.currentTimeMillisUnsafe(), query)
        )
      ),
    interrupt: (id) =>
      /^[rs]\d+$/.test(id)
        ? Effect.map(server.interrupt(id.slice(1)), ({ _tag }) => _tag !== "NotFound")
        : Effect.succeed(false)
  }
}

/**
 * The JSON of a value, up to about as many characters. The rest is not read: a client can send megabytes, at any depth,
 * and the arguments of all requests are written each second.
 */
const jsonUpTo = (value: unknown, maxChars: number): string => {
  if (typeof value === "string") return JSON.stringify(value.slice(0, Math.max(0, maxChars)))
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  let text = isList ? "[" : "{"
  if (text.length > maxChars) return text
  for (const key in value) {
    const member = (value as JsonRpc.JsonObject)[key]
    if (member === undefined) continue
    if (text.length > 1) text += ","
    if (!isList) text += `${jsonUpTo(key, maxChars - text.length)}:`
    text += jsonUpTo(member, maxChars - text.length)
    if (text.length > maxChars) return text
  }
  return text + (isList ? "]" : "}")
}

/** The params of a request without their metadata, as JSON. */
export const clipJson = (params: JsonRpc.JsonObject, maxChars: number): string =>
  clip(jsonUpTo({ ...params, _meta: undefined }, maxChars), maxChars)
