/**
 * Tests of a client with Skein's interactive server (`fixtures/skeinInteractive.ts`), which sends requests and
 * notifications.
 */
import { expect, it } from "vitest"
import type { InteractiveClient } from "./testClient.ts"
import { eventually } from "./eventually.ts"
import { topics } from "./fixtures/skeinInteractive.ts"
import { oneNode, type Pairing } from "./matrix.ts"

export const textOf = (outcome: { readonly content: ReadonlyArray<Readonly<Record<string, unknown>>> }): unknown =>
  outcome.content.length === 1 ? outcome.content[0]!["text"] : outcome.content

export const interactiveClientTests = (
  { agreed }: Pairing,
  connected: () => InteractiveClient,
  { sharesAddedTools } = oneNode
): void => {
  const stateless = agreed === "2026-07-28"
  const elicits = agreed >= "2025-06-18"
  const call = async (name: string, args = {}) => textOf(await connected().call(name, args))
  const asked = () => (connected().asked as Array<string>).splice(0)

  it("asks the user, if the revision has elicitation", async () => {
    if (elicits) {
      expect(await call("who", { question: "Who?" })).toBe("Hello, Ada!")
      expect(await call("who", { question: "Decline this" })).toBe("You would not: decline")
      expect(asked()).toEqual(["elicitation/create", "elicitation/create"])
    } else {
      const outcome = await connected().call("who", { question: "Who?" })
      expect(outcome.isError).toBe(true)
      expect(textOf(outcome)).toContain(agreed)
      expect(asked()).toEqual([])
    }
  })

  if (agreed >= "2025-11-25") {
    it("sends the user to a URL, and notifies the client of its completion, if the revision has that notification", async () => {
      expect(await call("visit")).toBe("visited")
      expect(asked()).toEqual(["elicitation/create"])
      await eventually(() => expect(connected().received.completed).toEqual(stateless ? [] : ["payment"]))
    })
  }

  it("sends sampling and roots requests", async () => {
    expect(await call("model")).toBe("Ada said")
    expect(await call("places")).toBe("file:///home/Ada")
    expect(asked()).toEqual(["sampling/createMessage", "roots/list"])
  })

  if (elicits) {
    it("sends several requests at once", async () => {
      expect(await call("everything")).toBe("Hello, Ada!\nAda said\nfile:///home/Ada")
      expect(asked().toSorted()).toEqual(["elicitation/create", "roots/list", "sampling/createMessage"])
    })

    it("sends one request after the other, and runs the effect between them once", async () => {
      const counts: Array<number> = []
      for (let n = 0; n < 2; n++) {
        const [first, second, count] = String(await call("twice")).split("\n")
        expect([first, second]).toEqual(["Hello, Ada!", "Hello, Ada!"])
        counts.push(Number(count))
      }
      expect(counts[1]).toBe(counts[0]! + 1)
      expect(asked()).toHaveLength(4)
    })

    it("sends requests from a prompt and a resource", async () => {
      expect(await connected().prompt("personal", {})).toMatchObject([{ content: { text: "Hello, Ada!" } }])
      expect(await connected().read("test://personal")).toMatchObject([{ text: "Hello, Ada!" }])
      expect(asked()).toEqual(["elicitation/create", "elicitation/create"])
    })
  }

  it("sends log messages from the requested level on; before, from info on in a session and none otherwise", async () => {
    const { logs } = connected().received
    const logged = () => logs.splice(0).map(({ data, level, logger }) => [level, logger, data])
    expect(await call("log")).toBe("logged")
    const before = stateless ? [] : ["info", "warning", "error"]
    await eventually(() => expect(logs).toHaveLength(before.length))
    expect(logged().map(([level]) => level)).toEqual(before)
    expect(textOf(await connected().logged("warning", "log", {}))).toBe("logged")
    await eventually(() => expect(logs).toHaveLength(2))
    expect(logged()).toEqual([["warning", "interactive", "a worry"], ["error", "interactive", "a fault"]])
    await connected().logged("debug", "log", {})
    await eventually(() => expect(logs).toHaveLength(4))
    expect(logged().map(([level]) => level)).toEqual(["debug", "info", "warning", "error"])
  })

  it("notifies of a watched resource only", async () => {
    const { updated } = connected().received
    const unwatch = await connected().watch({ resource: "test://watched" })
    await call("touch", { uri: "test://other" })
    await call("touch", { uri: "test://watched" })
    await eventually(() => expect(updated).toEqual(["test://watched"]))
    await unwatch()
    const unwatchOther = await connected().watch({ resource: "test://other" })
    await call("touch", { uri: "test://watched" })
    await call("touch", { uri: "test://other" })
    await eventually(() => expect(updated).toEqual(["test://watched", "test://other"]))
    await unwatchOther()
  })

  it("notifies of a changed list, and returns the new list", async () => {
    const { lists } = connected().received
    lists.splice(0)
    const names = async () => (await connected().tools()).map(({ name }) => name)
    const unwatch = await connected().watch({ tools: true })
    expect(await names()).not.toContain("grown")
    const growing = connected().call("grow", {})
    await eventually(() => expect(lists).toEqual(["tools"]))
    if (sharesAddedTools) {
      expect(await names()).toContain("grown")
      expect(await call("grown")).toBe("for a while")
    } else {
      const outcome = () =>
        connected().call("grown", {}).then((outcome) => outcome.isError ? "failed" : textOf(outcome), () => "failed")
      await eventually(async () => expect(await outcome()).toBe("for a while"))
      await eventually(async () => expect(await outcome()).toBe("failed"))
    }
    expect(await call("release")).toBe("1")
    expect(textOf(await growing)).toBe("grown")
    await eventually(() => expect(lists).toEqual(["tools", "tools"]))
    expect(await names()).not.toContain("grown")
    await unwatch()
  })

  it("completes arguments of prompts and templates", async () => {
    expect(await connected().completePrompt("brief", "topic", "kn")).toEqual(
      topics.filter((topic) => topic !== "ropes")
    )
    expect(await connected().completeTemplate("test://item/{id}", "id", "1")).toEqual(["10", "11"])
  })

  if (!stateless) {
    it("responds to a ping", async () => {
      expect(await connected().ping()).toEqual({})
    })
  }

  it("causes no client errors outside of calls", async () => {
    await connected().close()
    expect(connected().clientErrors).toEqual([])
  })
}
