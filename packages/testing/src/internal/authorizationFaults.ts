/**
 * Applies the faults of an `AuthorizationScenario` to responses.
 */
import type { ServerResponse } from "node:http"
import type { Endpoint, Fault, Rule } from "../AuthorizationScenario.ts"

/** A response before its faults. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  readonly json?: Readonly<Record<string, unknown>>
  /** The address of a redirect, whose parameters `Members` changes. */
  readonly location?: URL
}

/** The faults of one request. */
export interface RequestFaults {
  /** How many requests to the endpoint preceded this one. */
  readonly count: number
  readonly members: ReadonlyArray<Extract<Fault, { readonly _tag: "Members" }>>
  readonly fault: Exclude<Fault, { readonly _tag: "Members" }> | undefined
}

/** Counts the requests to each endpoint, and finds their faults. */
export class AuthorizationFaults {
  rules: ReadonlyArray<Rule>
  readonly #counts = new Map<Endpoint, number>()

  constructor(rules: ReadonlyArray<Rule>) {
    this.rules = rules
  }

  /** Replaces the rules. Requests are counted from 0 again. */
  use(rules: ReadonlyArray<Rule>): void {
    this.rules = rules
    this.#counts.clear()
  }

  next(on: Endpoint): RequestFaults {
    const count = this.#counts.get(on) ?? 0
    this.#counts.set(on, count + 1)
    const all = this.rules.flatMap((rule) =>
      rule.on === on && count >= rule.nth && count < rule.nth + rule.times ? [rule.fault] : []
    )
    return {
      count,
      members: all.flatMap((fault) => fault._tag === "Members" ? [fault] : []),
      fault: all.flatMap((fault) => fault._tag === "Members" ? [] : [fault])[0]
    }
  }
}

/** Puts addresses into the texts of a fault, at any depth. */
const expand = (value: unknown, names: Readonly<Record<string, string>>): unknown => {
  if (typeof value === "string") return value.replaceAll(/\{(\w+)\}/g, (text, name) => names[name] ?? text)
  if (Array.isArray(value)) return value.map((each) => expand(each, names))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, expand(each, names)]))
}

const expandHeaders = (
  headers: Readonly<Record<string, string | ReadonlyArray<string>>>,
  names: Readonly<Record<string, string>>
): Record<string, string | Array<string>> => expand(headers, names) as Record<string, string | Array<string>>

/** Sends a body that never ends. */
const sendEndlessly = (response: ServerResponse): void => {
  const chunk = `"${"x".repeat(4_000)}",`
  const more = (): void => {
    while (!response.destroyed && response.write(chunk)) continue
    if (!response.destroyed) response.once("drain", more)
  }
  response.write("[")
  more()
}

/** Changes the members of a body, or the parameters of a redirect. */
const change = (reply: Reply, members: RequestFaults["members"], names: Readonly<Record<string, string>>): Reply => {
  const { json, location } = reply
  if (location !== undefined) {
    const url = new URL(location)
    for (const { remove = [], set = {} } of members) {
      for (const [name, value] of Object.entries(set)) url.searchParams.set(name, String(expand(value, names)))
      for (const name of remove) url.searchParams.delete(name)
    }
    return { ...reply, location: url }
  }
  const all: Record<string, unknown> = { ...json }
  for (const { remove = [], set = {} } of members) {
    Object.assign(all, expand(set, names))
    for (const name of remove) delete all[name]
  }
  return json === undefined ? reply : { ...reply, json: all }
}

/** Whether the request is carried out before its fault. */
const isHandled = (fault: RequestFaults["fault"]): boolean =>
  fault === undefined || ("isHandled" in fault && fault.isHandled === true)

/** Sends a response with its faults. `handle` carries the request out, if its fault lets it. */
export const sendWithFaults = (
  response: ServerResponse,
  { fault, members }: RequestFaults,
  handle: () => Reply,
  names: Readonly<Record<string, string>>
): void => {
  const reply = isHandled(fault) ? handle() : undefined
  const json = { "content-type": "application/json" }
  switch (fault?._tag) {
    case undefined: {
      const { headers = {}, json: body, location, status } = change(reply!, members, names)
      response.writeHead(status, {
        ...(body === undefined ? {} : json),
        ...(location === undefined ? {} : { location: location.href }),
        ...expandHeaders(headers, names)
      })
      return void response.end(body === undefined ? "" : JSON.stringify(body))
    }
    case "Respond":
      response.writeHead(fault.status, expandHeaders(fault.headers ?? {}, names))
      return void response.end(
        Buffer.from(String(expand(fault.body ?? "", names)), fault.encoding === "latin1" ? "latin1" : "utf8")
      )
    case "LargeBody":
      return void response.writeHead(200, json).end(`{"padding":"${"x".repeat(fault.bytes - 14)}"}`)
    case "DeepBody":
      return void response.writeHead(200, json).end(`${"[".repeat(fault.depth)}${"]".repeat(fault.depth)}`)
    case "EndlessBody":
      return sendEndlessly(response.writeHead(200, json))
    case "Stall":
      return fault.after === "head" ? void response.writeHead(200, json).write("{") : undefined
    case "Cut":
      return void response.socket?.destroy()
  }
}
