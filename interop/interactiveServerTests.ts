/**
 * Tests of Skein's client with an official server that sends requests and notifications (see
 * `fixtures/interactiveState.ts`).
 */
import type { Revision } from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { expect, it } from "vitest"
import { textOf } from "./interactiveClientTests.ts"
import { eventually } from "./eventually.ts"
import type { StateCounts } from "./fixtures/interactiveState.ts"
import type { InteractiveSkeinClient } from "./skeinClient.ts"

/** A feature that a server lacks, in general or in one configuration. `servers/configurations.ts` has the reasons. */
export type Missing =
  /** Requests to the client. */
  | "serverRequests"
  /** The client's responses to such requests. */
  | "clientResponses"
  /** Progress and log messages of a call. */
  | "callNotifications"
  /** Forms with default values. */
  | "formDefaults"
  /** Cancellation of calls. */
  | "cancellation"
  /** Notifications of changed resources. */
  | "resourceUpdates"
  /** Notifications of changed lists. */
  | "listChanges"
  /** Removing a tool. */
  | "toolRemoval"
  /** Notifications that the roots have changed. */
  | "rootsChanges"
  /** `logging/setLevel`, which requires a session. */
  | "logLevels"
  /** URL elicitation. */
  | "urlElicitation"
  /** `notifications/elicitation/complete`. */
  | "urlCompletion"
  /** `URLElicitationRequiredError`. */
  | "urlRequired"

export interface ServerUnderTest {
  readonly agreed: Revision
  readonly missing: ReadonlySet<Missing>
  readonly state: () => Promise<StateCounts>
  readonly connected: () => InteractiveSkeinClient
}

export const interactiveServerTests = ({ agreed, connected, missing, state }: ServerUnderTest): void => {
  const stateless = agreed === "2026-07-28"
  const elicits = agreed >= "2025-06-18"
  const call = async (name: string, args = {}) => textOf(await connected().call(name, args))
  const asked = () => connected().asked.splice(0)

  if (missing.has("serverRequests")) {
    it("returns a tool error if the server cannot send requests", async () => {
      expect((await connected().call("model", {})).isError).toBe(true)
      expect(asked()).toEqual([])
    })
  } else if (missing.has("clientResponses")) {
    it("times out if the server does not receive the response", async () => {
      const { client, run } = connected()
      await expect(run(client.callTool("model", {}, { timeout: "2 seconds" }))).rejects.toMatchObject({
        reason: { _tag: "Timeout" }
      })
      expect(asked()).toEqual(["model"])
    })
  } else {
    it("asks the user, if the revision has elicitation", async () => {
      if (!elicits) {
        expect((await connected().call("who", { question: "Who?" })).isError).toBe(true)
        expect(asked()).toEqual([])
        return
      }
      expect(await call("who", { question: "Who?" })).toBe("Hello, Ada!")
      expect(await call("who", { question: "Decline this" })).toBe("You would not: decline")
      expect(asked()).toEqual(["form", "form"])
    })

    if (elicits) {
      it("fills empty fields with the defaults of the form", async () => {
        connected().defaults.splice(0)
        if (missing.has("formDefaults")) {
          expect((await connected().call("form", {})).isError).toBe(true)
          expect(asked()).toEqual([])
          return
        }
        const entered: unknown = JSON.parse(String(await call("form")))
        // 2025-06-18 has defaults of booleans only. The SDKs send the others too, and they are read.
        const defaults = { city: "Oslo", age: 36, keep: true, size: "m" }
        expect(entered).toEqual({ name: "Ada", ...defaults })
        expect(connected().defaults).toEqual([defaults])
        expect(asked()).toEqual(["form"])
      })
    }

    if (agreed >= "2025-11-25" && !missing.has("urlElicitation")) {
      it("sends the user to a URL, and receives its completion if the server sends it", async () => {
        expect(await call("visit")).toBe("accept")
        expect(asked()).toEqual(["https://example.com/pay"])
        if (!missing.has("urlCompletion")) {
          await eventually(() => expect(connected().received.completed).toEqual(["payment"]))
        }
      })
    }

    if (agreed === "2025-11-25" && !missing.has("urlRequired")) {
      it("retries a call that requires a URL elicitation after its completion", async () => {
        const { gates } = await state()
        expect(await call("gate")).toBe("in")
        expect((await state()).gates).toBe(gates + 1)
        expect(asked()).toEqual(["https://example.com/gate"])
      })
    }

    it("answers sampling and roots requests, and announces changed roots", async () => {
      expect(await call("model")).toBe("Ada said")
      expect(await call("places")).toBe("file:///home/Ada")
      const { rootsChanged } = await state()
      await connected().setRoots("tmp", "srv")
      if (!stateless && !missing.has("rootsChanges")) {
        await eventually(async () => expect((await state()).rootsChanged).toBe(rootsChanged + 1))
      }
      expect(await call("places")).toBe("file:///tmp file:///srv")
      await connected().setRoots("home/Ada")
      if (!stateless && !missing.has("rootsChanges")) {
        await eventually(async () => expect((await state()).rootsChanged).toBe(rootsChanged + 2))
      }
      expect(asked()).toEqual(["model"])
    })
  }

  if (!missing.has("logLevels")) {
    it("receives log messages from the requested level on", async () => {
      const { logs } = connected().received
      const logged = () => logs.splice(0).map(({ data, level }) => [level, data])
      if (stateless) expect([await call("log"), logged()]).toEqual(["logged", []])
      await connected().run(connected().client.setLoggingLevel("warning"))
      expect(await call("log")).toBe("logged")
      await eventually(() => expect(logs).toHaveLength(2))
      expect(logged()).toEqual([["warning", "a worry"], ["error", "a fault"]])
      await connected().run(connected().client.setLoggingLevel("debug"))
      expect(await call("log")).toBe("logged")
      await eventually(() => expect(logs).toHaveLength(4))
      expect(logged().map(([level]) => level)).toEqual(["debug", "info", "warning", "error"])
    })
  }

  it("receives updates of a watched resource only", async () => {
    const watching = connected().watch({ uris: ["test://watched"] })
    const events = () => watching.changes.map((change) => change._tag === "ResourceUpdated" ? change.uri : change._tag)
    if (missing.has("resourceUpdates")) {
      await eventually(() => expect(watching.failure).toMatchObject({ reason: { _tag: "Unsupported" } }))
      expect(events()).toEqual([])
      return watching.end()
    }
    await eventually(() => expect(events()).toEqual(["Subscribed"]))
    expect(watching.changes[0]).toMatchObject({ honoured: { uris: ["test://watched"] } })
    await call("touch", { uri: "test://other" })
    await call("touch", { uri: "test://watched" })
    await eventually(() => expect(events()).toEqual(["Subscribed", "test://watched"]))
    await watching.end()
    const other = connected().watch({ uris: ["test://other"] })
    await eventually(() => expect(other.changes).toHaveLength(1))
    await call("touch", { uri: "test://watched" })
    await call("touch", { uri: "test://other" })
    await eventually(() => expect(other.changes.slice(1)).toEqual([{ _tag: "ResourceUpdated", uri: "test://other" }]))
    await other.end()
    expect(events()).toEqual(["Subscribed", "test://watched"])
  })

  it("receives list changes", async () => {
    const watching = connected().watch({ tools: true })
    const events = () => watching.changes.map(({ _tag }) => _tag)
    if (missing.has("listChanges")) {
      await eventually(() => expect(watching.failure).toMatchObject({ reason: { _tag: "Unsupported" } }))
      return watching.end()
    }
    await eventually(() => expect(events()).toEqual(["Subscribed"]))
    const growing = call("grow")
    await eventually(() => expect(events()).toEqual(["Subscribed", "ToolListChanged"]))
    // With a server for each request, another server has the new tool.
    if (!stateless) {
      expect((await connected().tools()).map(({ name }) => name)).toContain("grown")
      expect(await call("grown")).toBe("for a while")
    }
    await call("release")
    expect(await growing).toBe("grown")
    if (!missing.has("toolRemoval")) {
      await eventually(() => expect(events()).toEqual(["Subscribed", "ToolListChanged", "ToolListChanged"]))
      expect((await connected().tools()).map(({ name }) => name)).not.toContain("grown")
    }
    await watching.end()
  })

  it("completes arguments of prompts and templates", async () => {
    const { client, run } = connected()
    const prompt = await run(
      client.complete({ ref: { type: "ref/prompt", name: "brief" }, argument: { name: "topic", value: "kn" } })
    )
    expect(prompt.completion.values).toEqual(["knots", "knitting"])
    const item = client.complete({
      ref: { type: "ref/resource", uri: "test://item/{id}" },
      argument: { name: "id", value: "1" }
    })
    expect((await run(item)).completion.values).toEqual(["10", "11"])
  })

  it("pings the server", () => connected().run(connected().client.ping()))

  if (!missing.has("callNotifications")) {
    it("receives progress during a call, across another call", async () => {
      const progress: Array<number> = []
      const call = connected().call("steps", {}, { onProgress: (note) => void progress.push(note.progress) })
      await eventually(() => expect(progress).toEqual([1, 2, 3]))
      await connected().call("release", {})
      expect(textOf(await call)).toBe("four steps")
      expect(progress).toEqual([1, 2, 3, 4])
    })
  }

  it("cancels an interrupted call and a call that times out on the server", async () => {
    const { interrupted, stuck } = await state()
    const { client, run } = connected()
    const fiber = Effect.runFork(client.callTool("stuck"))
    await eventually(async () => expect((await state()).stuck).toBe(stuck + 1))
    await run(Fiber.interrupt(fiber))
    if (!missing.has("cancellation")) {
      await eventually(async () => expect((await state()).interrupted).toBe(interrupted + 1))
    }
    // On a loaded machine a call may time out before it is sent, and the server has nothing to cancel.
    do {
      await expect(run(client.callTool("stuck", {}, { timeout: "50 millis" }))).rejects.toMatchObject({
        reason: { _tag: "Timeout" }
      })
    } while ((await state()).stuck === stuck + 1)
    if (!missing.has("cancellation")) {
      await eventually(async () => expect((await state()).interrupted).toBe(interrupted + 2))
    }
    expect((await state()).stuck).toBe(stuck + 2)
    await run(client.ping())
  })
}
