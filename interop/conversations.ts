/**
 * What has to hold whenever an official client talks with our server: it is asked, told, and listens.
 */
import { expect, it } from "vitest"
import type { TalkingClient } from "./clients.ts"
import { eventually } from "./eventually.ts"
import { topics } from "./fixtures/skein-talk.ts"
import type { Meeting } from "./matrix.ts"

export const textOf = (outcome: { readonly content: ReadonlyArray<Readonly<Record<string, unknown>>> }): unknown =>
  outcome.content.length === 1 ? outcome.content[0]!["text"] : outcome.content

export const conversations = ({ agreed }: Meeting, connected: () => TalkingClient): void => {
  const requestEra = agreed === "2026-07-28"
  const elicits = agreed >= "2025-06-18"
  const call = async (name: string, args = {}) => textOf(await connected().call(name, args))
  const asked = () => (connected().asked as Array<string>).splice(0)

  it("its user is asked, where the revision can", async () => {
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
    it("its user is sent to an address, and it hears of the end of the visit, where the revision has a word for it", async () => {
      expect(await call("visit")).toBe("visited")
      expect(asked()).toEqual(["elicitation/create"])
      await eventually(() => expect(connected().heard.completed).toEqual(requestEra ? [] : ["payment"]))
    })
  }

  it("its model is asked, and where it works", async () => {
    expect(await call("model")).toBe("Ada said")
    expect(await call("places")).toBe("file:///home/Ada")
    expect(asked()).toEqual(["sampling/createMessage", "roots/list"])
  })

  if (elicits) {
    it("several questions at once", async () => {
      expect(await call("everything")).toBe("Hello, Ada!\nAda said\nfile:///home/Ada")
      expect(asked().toSorted()).toEqual(["elicitation/create", "roots/list", "sampling/createMessage"])
    })

    it("one question after the other, and what is done between them is done once", async () => {
      const counts: Array<number> = []
      for (let n = 0; n < 2; n++) {
        const [first, second, count] = String(await call("twice")).split("\n")
        expect([first, second]).toEqual(["Hello, Ada!", "Hello, Ada!"])
        counts.push(Number(count))
      }
      expect(counts[1]).toBe(counts[0]! + 1)
      expect(asked()).toHaveLength(4)
    })

    it("a prompt and a resource may ask as well", async () => {
      expect(await connected().prompt("personal", {})).toMatchObject([{ content: { text: "Hello, Ada!" } }])
      expect(await connected().read("test://personal")).toMatchObject([{ text: "Hello, Ada!" }])
      expect(asked()).toEqual(["elicitation/create", "elicitation/create"])
    })
  }

  it("logs come from the level on that was asked for, and not unasked", async () => {
    const { logs } = connected().heard
    const told = () => logs.splice(0).map(({ data, level, logger }) => [level, logger, data])
    expect(await call("log")).toBe("logged")
    expect(textOf(await connected().logged("warning", "log", {}))).toBe("logged")
    await eventually(() => expect(logs).toHaveLength(2))
    expect(told()).toEqual([["warning", "talk", "a worry"], ["error", "talk", "a fault"]])
    await connected().logged("debug", "log", {})
    await eventually(() => expect(logs).toHaveLength(4))
    expect(told().map(([level]) => level)).toEqual(["debug", "info", "warning", "error"])
  })

  it("a resource that is watched is told of, and no other", async () => {
    const { updated } = connected().heard
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

  it("a list that changes is told of, and is another", async () => {
    const { lists } = connected().heard
    lists.splice(0)
    const names = async () => (await connected().tools()).map(({ name }) => name)
    const unwatch = await connected().watch({ tools: true })
    expect(await names()).not.toContain("grown")
    const growing = connected().call("grow", {})
    await eventually(() => expect(lists).toEqual(["tools"]))
    expect(await names()).toContain("grown")
    expect(await call("grown")).toBe("for a while")
    expect(await call("release")).toBe("1")
    expect(textOf(await growing)).toBe("grown")
    await eventually(() => expect(lists).toEqual(["tools", "tools"]))
    expect(await names()).not.toContain("grown")
    await unwatch()
  })

  it("what is typed is completed", async () => {
    expect(await connected().completePrompt("brief", "topic", "kn")).toEqual(
      topics.filter((topic) => topic !== "ropes")
    )
    expect(await connected().completeTemplate("test://item/{id}", "id", "1")).toEqual(["10", "11"])
  })

  if (!requestEra) {
    it("a ping is answered", async () => {
      expect(await connected().ping()).toEqual({})
    })
  }

  it("nothing was said that belongs nowhere", async () => {
    await connected().close()
    expect(connected().complaints).toEqual([])
  })
}
