/** A handler that cleans up when it ends early. */
import { AsyncServer, tool } from "skein"
import { z } from "zod"

/** The actions of the desk. */
export const notes: Array<string> = []

const openDesk = async () => ({
  write: async (text: string) => void notes.push(text),
  close: async () => void notes.push("closed")
})

// #region ends
const reserve = tool("reserve", {}, async (_, { elicit, signal }) => {
  const desk = await openDesk()
  try {
    const answer = await elicit("For how many?", z.object({ people: z.int() }))
    return answer.action === "accept" ? `A table for ${answer.content.people}` : "No table"
  } catch (error) {
    // Not for an early end: the guest has not refused to answer.
    if (!signal.aborted) await desk.write("the guest could not be asked")
    throw error
  } finally {
    await desk.close()
  }
})
// #endregion

export const server = new AsyncServer({ name: "desk", version: "1.0.0" }).use(reserve)
