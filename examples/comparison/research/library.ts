/** A library with a few texts, for both servers of this folder. It is often busy: every second read of a text fails. */
import { setTimeout } from "node:timers/promises"

/** A text of the library. */
export interface Source {
  readonly id: string
  readonly title: string
}

const texts: ReadonlyArray<Source & { readonly text: string }> = [
  { id: "t1", title: "Green tea", text: "Green tea is heated soon after the harvest, so that it stays green." },
  { id: "t2", title: "Black tea", text: "Black tea is oxidized before it is dried." },
  { id: "t3", title: "Coffee", text: "Coffee is made of roasted beans." }
]

const reads = new Map<string, number>()

/** Finds texts about a topic. */
export const search = async (topic: string, signal: AbortSignal): Promise<ReadonlyArray<Source>> => {
  await setTimeout(20, undefined, { signal })
  return texts.filter(({ text }) => text.toLowerCase().includes(topic.toLowerCase()))
    .map(({ id, title }) => ({ id, title }))
}

/** Reads a text. */
export const read = async (id: string, signal: AbortSignal): Promise<string> => {
  await setTimeout(20, undefined, { signal })
  const count = (reads.get(id) ?? 0) + 1
  reads.set(id, count)
  if (count % 2 === 1) throw new Error("The library is busy")
  return texts.find((source) => source.id === id)!.text
}
