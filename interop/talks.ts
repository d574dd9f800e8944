/**
 * What has to hold whenever our client talks with a server of others (`fixtures/board.ts`): it is asked, told, and listens.
 */
import type { Revision } from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { expect, it } from "vitest"
import { textOf } from "./conversations.ts"
import { eventually } from "./eventually.ts"
import type { Noted } from "./fixtures/board.ts"
import type { Host } from "./skein-client.ts"

/** What a server of others cannot do, or not as it is served; each with the reason, where the table of the meetings is. */
export type Lack =
  /** Asking the client anything; hearing the answer. */
  | "asking"
  | "hearing"
  /** Progress and logs that belong to a call. */
  | "telling"
  /** Forms with defaults. */
  | "defaults"
  /** Hearing that a call is cancelled. */
  | "cancelling"
  /** Telling that resources, or lists, have changed. */
  | "updates"
  | "lists"
  /** Taking back what it offered. */
  | "removing"
  /** Hearing that the roots are others. */
  | "roots"
  /** What it needs sessions for. */
  | "levels"
  | "urls"
  | "completed"
  | "gates"

export interface Talk {
  readonly agreed: Revision
  readonly lacks: ReadonlySet<Lack>
  readonly board: () => Promise<Noted>
  readonly connected: () => Host
}

export const talks = ({ agreed, board, connected, lacks }: Talk): void => {
  const requestEra = agreed === "2026-07-28"
  const elicits = agreed >= "2025-06-18"
  const call = async (name: string, args = {}) => textOf(await connected().call(name, args))
  const asked = () => connected().asked.splice(0)

  if (lacks.has("asking")) {
    it("a server that cannot ask says so, and nobody is asked", async () => {
      expect((await connected().call("model", {})).isError).toBe(true)
      expect(asked()).toEqual([])
    })
  } else if (lacks.has("hearing")) {
    it("a server that does not hear our answer is not waited for longer than the call may take", async () => {
      const { client, run } = connected()
      await expect(run(client.callTool("model", {}, { timeout: "50 millis" }))).rejects.toMatchObject({
        reason: { _tag: "Timeout" }
      })
      expect(asked()).toEqual(["model"])
    })
  } else {
    it("our user is asked, where the revision can", async () => {
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
      it("what the user leaves empty has the default of the form", async () => {
        connected().defaults.splice(0)
        if (lacks.has("defaults")) {
          expect((await connected().call("form", {})).isError).toBe(true)
          expect(asked()).toEqual([])
          return
        }
        const entered: unknown = JSON.parse(String(await call("form")))
        // 2025-06-18 has defaults of booleans only; the SDKs write the others all the same.
        const defaults = agreed === "2025-06-18" ? { keep: true } : { city: "Oslo", age: 36, keep: true, size: "m" }
        expect(entered).toEqual({ name: "Ada", ...defaults })
        expect(connected().defaults).toEqual([defaults])
        expect(asked()).toEqual(["form"])
      })
    }

    if (agreed >= "2025-11-25" && !lacks.has("urls")) {
      it("our user is sent to an address, and we hear of the end of the visit where the server says it", async () => {
        expect(await call("visit")).toBe("accept")
        expect(asked()).toEqual(["https://example.com/pay"])
        if (!lacks.has("completed")) await eventually(() => expect(connected().heard.completed).toEqual(["payment"]))
      })
    }

    if (agreed === "2025-11-25" && !lacks.has("gates")) {
      it("a call that needs a visit before it waits for that, and is made again", async () => {
        const { gates } = await board()
        expect(await call("gate")).toBe("in")
        expect((await board()).gates).toBe(gates + 1)
        expect(asked()).toEqual(["https://example.com/gate"])
      })
    }

    it("our model is asked, and where we work, and where we work by then", async () => {
      expect(await call("model")).toBe("Ada said")
      expect(await call("places")).toBe("file:///home/Ada")
      const { rootsChanged } = await board()
      await connected().move("tmp", "srv")
      if (!requestEra && !lacks.has("roots")) {
        await eventually(async () => expect((await board()).rootsChanged).toBe(rootsChanged + 1))
      }
      expect(await call("places")).toBe("file:///tmp file:///srv")
      await connected().move("home/Ada")
      if (!requestEra && !lacks.has("roots")) {
        await eventually(async () => expect((await board()).rootsChanged).toBe(rootsChanged + 2))
      }
      expect(asked()).toEqual(["model"])
    })
  }

  if (!lacks.has("levels")) {
    it("logs come from the level on that was asked for", async () => {
      const { logs } = connected().heard
      const told = () => logs.splice(0).map(({ data, level }) => [level, data])
      if (requestEra) expect([await call("log"), told()]).toEqual(["logged", []])
      await connected().run(connected().client.setLoggingLevel("warning"))
      expect(await call("log")).toBe("logged")
      await eventually(() => expect(logs).toHaveLength(2))
      expect(told()).toEqual([["warning", "a worry"], ["error", "a fault"]])
      await connected().run(connected().client.setLoggingLevel("debug"))
      expect(await call("log")).toBe("logged")
      await eventually(() => expect(logs).toHaveLength(4))
      expect(told().map(([level]) => level)).toEqual(["debug", "info", "warning", "error"])
    })
  }

  it("a resource that is watched is told of, and no other", async () => {
    const watching = connected().watch({ uris: ["test://watched"] })
    const told = () => watching.changes.map((change) => change._tag === "ResourceUpdated" ? change.uri : change._tag)
    if (lacks.has("updates")) {
      await eventually(() => expect(watching.failure).toMatchObject({ reason: { _tag: "Unsupported" } }))
      expect(told()).toEqual([])
      return watching.end()
    }
    await eventually(() => expect(told()).toEqual(["Subscribed"]))
    expect(watching.changes[0]).toMatchObject({ honoured: { uris: ["test://watched"] } })
    await call("touch", { uri: "test://other" })
    await call("touch", { uri: "test://watched" })
    await eventually(() => expect(told()).toEqual(["Subscribed", "test://watched"]))
    await watching.end()
    const other = connected().watch({ uris: ["test://other"] })
    await eventually(() => expect(other.changes).toHaveLength(1))
    await call("touch", { uri: "test://watched" })
    await call("touch", { uri: "test://other" })
    await eventually(() => expect(other.changes.slice(1)).toEqual([{ _tag: "ResourceUpdated", uri: "test://other" }]))
    await other.end()
    expect(told()).toEqual(["Subscribed", "test://watched"])
  })

  it("a list that changes is told of", async () => {
    const watching = connected().watch({ tools: true })
    const told = () => watching.changes.map(({ _tag }) => _tag)
    if (lacks.has("lists")) {
      await eventually(() => expect(watching.failure).toMatchObject({ reason: { _tag: "Unsupported" } }))
      return watching.end()
    }
    await eventually(() => expect(told()).toEqual(["Subscribed"]))
    const growing = call("grow")
    await eventually(() => expect(told()).toEqual(["Subscribed", "ToolListChanged"]))
    // A server that is made for each request has grown in another one.
    if (!requestEra) {
      expect((await connected().tools()).map(({ name }) => name)).toContain("grown")
      expect(await call("grown")).toBe("for a while")
    }
    await call("release")
    expect(await growing).toBe("grown")
    if (!lacks.has("removing")) {
      await eventually(() => expect(told()).toEqual(["Subscribed", "ToolListChanged", "ToolListChanged"]))
      expect((await connected().tools()).map(({ name }) => name)).not.toContain("grown")
    }
    await watching.end()
  })

  it("what is typed is completed", async () => {
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

  it("the server is there", () => connected().run(connected().client.ping()))

  if (!lacks.has("telling")) {
    it("progress comes while the call runs, with another call between", async () => {
      const progress: Array<number> = []
      const call = connected().call("steps", {}, { onProgress: (note) => void progress.push(note.progress) })
      await eventually(() => expect(progress).toEqual([1, 2, 3]))
      await connected().call("release", {})
      expect(textOf(await call)).toBe("four steps")
      expect(progress).toEqual([1, 2, 3, 4])
    })
  }

  it("a call that is cancelled, or takes too long, is over where it runs", async () => {
    const { interrupted, stuck } = await board()
    const { client, run } = connected()
    const fiber = Effect.runFork(client.callTool("stuck"))
    await eventually(async () => expect((await board()).stuck).toBe(stuck + 1))
    await run(Fiber.interrupt(fiber))
    if (!lacks.has("cancelling")) {
      await eventually(async () => expect((await board()).interrupted).toBe(interrupted + 1))
    }
    await expect(run(client.callTool("stuck", {}, { timeout: "50 millis" }))).rejects.toMatchObject({
      reason: { _tag: "Timeout" }
    })
    if (!lacks.has("cancelling")) {
      await eventually(async () => expect((await board()).interrupted).toBe(interrupted + 2))
    }
    expect((await board()).stuck).toBe(stuck + 2)
    await run(client.ping())
  })
}
