import type { CallToolRequestParams, CallToolResult } from "@skein/protocol/CallTool"
import * as Capabilities from "@skein/protocol/Capabilities"
import type { ContentBlock } from "@skein/protocol/Content"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { describe, expect, expectTypeOf, it } from "vitest"

const names =
  (of: (name: string, revision: Revision.Revision) => unknown, all: ReadonlyArray<{ readonly name: string }>) =>
  (revision: Revision.Revision) =>
    new Set(all.map(({ name }) => name).filter((name) => of(name, revision) !== undefined))

const requests = names(Method.request, Method.requests)
const notifications = names(Method.notification, Method.notifications)

describe("the table", () => {
  it("has the types of a method's params and result", () => {
    expectTypeOf(Method.CallTool).toEqualTypeOf<Method.RequestMethod<CallToolRequestParams, CallToolResult>>()
    expectTypeOf<Method.Params<typeof Method.CallTool>>().toEqualTypeOf<CallToolRequestParams>()
    expectTypeOf<Method.Result<typeof Method.CallTool>>().toEqualTypeOf<CallToolResult>()
    expectTypeOf<CallToolResult["content"]>().toEqualTypeOf<ReadonlyArray<ContentBlock>>()
    expectTypeOf<{ readonly content: [] }>().toExtend<CallToolResult>()
    expect(Method.CallTool.name).toBe("tools/call")
  })

  it("2026-07-28 · lacks initialize, ping, logging/setLevel, resources/subscribe and roots/list_changed", () => {
    for (const revision of Revision.sessionBased) {
      for (const name of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]) {
        expect(Method.request(name, revision)?.name).toBe(name)
        expect(Method.request(name, "2026-07-28")).toBeUndefined()
      }
      expect(Method.notification("notifications/roots/list_changed", revision)).toBeDefined()
      expect(Method.notification("notifications/initialized", revision)).toBeDefined()
    }
    expect(Method.notification("notifications/roots/list_changed", "2026-07-28")).toBeUndefined()
    expect(Method.notification("notifications/initialized", "2026-07-28")).toBeUndefined()
  })

  it("2026-07-28 · adds server/discover and subscriptions/listen", () => {
    for (const name of ["server/discover", "subscriptions/listen"]) {
      expect(Method.request(name, "2026-07-28")?.name).toBe(name)
      expect(Method.request(name, "2025-11-25")).toBeUndefined()
    }
    expect(Method.notification("notifications/subscriptions/acknowledged", "2025-11-25")).toBeUndefined()
  })

  it("2026-07-28 · has requests of the server only as input requests inside results", () => {
    for (const name of ["sampling/createMessage", "roots/list", "elicitation/create"]) {
      expect(Method.request(name, "2026-07-28")).toBeUndefined()
      expect(Method.inputRequest(name, "2026-07-28")?.name).toBe(name)
      expect(Method.inputRequest(name, "2025-11-25")).toBeUndefined()
      expect(Method.request(name, "2025-11-25")?.from).toBe("server")
    }
    expect(Method.inputRequest("tools/call", "2026-07-28")).toBeUndefined()
    expect(
      Method.requests.filter((method) =>
        Method.request(method.name, "2026-07-28") === method && method.from !== "client"
      )
    )
      .toEqual([])
  })

  it("2025-06-18 · adds elicitation/create", () => {
    expect(Method.request("elicitation/create", "2025-03-26")).toBeUndefined()
    expect(Method.request("elicitation/create", "2025-06-18")).toBe(Method.Elicit)
  })

  it("has two entries for a name with two meanings, in different revisions", () => {
    expect(Method.request("tasks/get", "2025-06-18")).toBeUndefined()
    expect(Method.request("tasks/get", "2025-11-25")).toBe(Method.LegacyGetTask)
    expect(Method.request("tasks/get", "2026-07-28")).toBe(Method.GetTask)
    expect(Method.request("tasks/result", "2026-07-28")).toBeUndefined()
    expect(Method.request("tasks/list", "2026-07-28")).toBeUndefined()
    expect(Method.request("tasks/update", "2025-11-25")).toBeUndefined()
    expect(Method.notification("notifications/tasks/status", "2026-07-28")).toBeUndefined()
    expect(Method.notification("notifications/tasks", "2026-07-28")).toBe(Method.TaskStatus)
    for (const revision of Revision.all) {
      for (const method of [...Method.requests, ...Method.notifications]) {
        const twins = [...Method.requests, ...Method.notifications].filter((other) =>
          other.name === method.name &&
          Revision.within(revision, other.since ?? "2024-11-05", other.until)
        )
        expect(twins.length).toBeLessThan(2)
      }
    }
  })

  it("counts the methods of each revision", () => {
    expect(Revision.all.map((revision) => [requests(revision).size, notifications(revision).size])).toEqual([
      [15, 9],
      [15, 9],
      [16, 9],
      [20, 11],
      [13, 9]
    ])
  })

  it("named returns the method of the revision, or of another one, or one of an extension", () => {
    expect(Method.named("tasks/get", "2025-11-25")).toBe(Method.LegacyGetTask)
    expect(Method.named("tasks/get", "2026-07-28")).toBe(Method.GetTask)
    expect(Method.named("ping", "2026-07-28")).toBe(Method.Ping)
    const { capability, from, name, since } = Method.named("com.example/jobs", "2026-07-28")
    expect({ capability, from, name, since }).toEqual({ name: "com.example/jobs", from: "both" })
  })

  it("returns undefined for a name that is not in the table", () => {
    for (const name of ["", "tools", "constructor", "__proto__", "notifications/initialized"]) {
      expect(Method.request(name, "2025-11-25")).toBeUndefined()
    }
    expect(Method.notification("ping", "2025-11-25")).toBeUndefined()
  })
})

describe("the properties of a method", () => {
  it("2026-07-28 · allow input_required only for tools/call, prompts/get and resources/read", () => {
    expect(Method.requests.filter((method) => method.inputRequired).map(({ name }) => name).sort()).toEqual([
      "prompts/get",
      "resources/read",
      "tools/call"
    ])
  })

  it("2026-07-28 · make the four lists, resources/read and server/discover cacheable", () => {
    expect(Method.requests.filter((method) => method.cacheable).map(({ name }) => name).sort()).toEqual([
      "prompts/list",
      "resources/list",
      "resources/read",
      "resources/templates/list",
      "server/discover",
      "tools/list"
    ])
  })

  it("2026-07-28 · mirror the name, the uri or the task's id in Mcp-Name", () => {
    const header = Object.fromEntries(
      Method.requests.flatMap(({ name, nameHeader }) => nameHeader === undefined ? [] : [[name, nameHeader]])
    )
    expect(header).toEqual({
      "tools/call": "name",
      "prompts/get": "name",
      "resources/read": "uri",
      "tasks/get": "taskId",
      "tasks/update": "taskId",
      "tasks/cancel": "taskId"
    })
  })

  it("2026-07-28 · allow progress notifications of the server only", () => {
    expect(Method.sender(Method.Progress, "2025-11-25")).toBe("both")
    expect(Method.sender(Method.Progress, "2026-07-28")).toBe("server")
    expect(Method.sender(Method.Cancelled, "2026-07-28")).toBe("both")
    expect(Method.sender(Method.CallTool, "2025-11-25")).toBe("client")
  })

  it("has accepts a capability whose path leads to a value other than false", () => {
    const subscribe = Method.Subscribe.capability!
    expect(Method.has({ resources: { subscribe: true } }, subscribe, "2025-11-25")).toBe(true)
    expect(Method.has({ resources: { subscribe: false } }, subscribe, "2025-11-25")).toBe(false)
    expect(Method.has({ resources: {} }, subscribe, "2025-11-25")).toBe(false)
    expect(Method.has({}, subscribe, "2025-11-25")).toBe(false)
    expect(Method.has(undefined, subscribe, "2025-11-25")).toBe(false)
    expect(Method.has({ tools: {} }, Method.CallTool.capability!, "2025-11-25")).toBe(true)
    expect(
      Method.has({ extensions: { "io.modelcontextprotocol/tasks": {} } }, Method.GetTask.capability!, "2026-07-28")
    )
      .toBe(true)
    expect(Method.has({}, { side: "server", path: ["constructor"] }, "2025-11-25")).toBe(false)
  })

  it("2025-11-25 · require a capability of the receiver for a request augmented with a task", () => {
    const needed = Method.taskCapability(Method.CallTool)
    expect(needed.side).toBe("receiver")
    expect(Method.has({ tasks: { requests: { tools: { call: {} } } } }, needed, "2025-11-25")).toBe(true)
    expect(Method.has({ tasks: { requests: { tools: {} } } }, needed, "2025-11-25")).toBe(false)
    expect(Method.requests.filter(({ taskAugmented }) => taskAugmented).map(({ name }) => name).sort()).toEqual([
      "elicitation/create",
      "sampling/createMessage",
      "tools/call"
    ])
  })

  it("elicits reads an elicitation capability without a mode as forms", () => {
    const modes = (elicitation: { readonly form?: {}; readonly url?: {} }) =>
      (["form", "url"] as const).filter((mode) => Capabilities.elicits({ elicitation }, mode))
    expect(modes({})).toEqual(["form"])
    expect(modes({ form: {} })).toEqual(["form"])
    expect(modes({ url: {} })).toEqual(["url"])
    expect(modes({ form: {}, url: {} })).toEqual(["form", "url"])
    expect(Capabilities.elicits({}, "form")).toBe(false)
  })

  it("2024-11-05 · require no capability for completion, which the revision cannot declare", () => {
    expect(Method.has({}, Method.Complete.capability!, "2024-11-05")).toBe(true)
    expect(Method.has({}, Method.Complete.capability!, "2025-03-26")).toBe(false)
  })
})
