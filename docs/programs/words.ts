// #region tool
import { VisibleError } from "@skein/server/HandlerError"
import * as Tool from "@skein/server/Tool"
import { z } from "zod"

const textOf = async (url: string, signal: AbortSignal): Promise<string> => {
  const response = await fetch(url, { signal }).catch(() => undefined)
  // The model reads the message, and can call the tool again.
  if (response?.ok !== true) throw new VisibleError(`${url} cannot be read: ${response?.status ?? "no response"}`)
  return response.text()
}

export const wordCount = Tool.async(
  Tool.make("word_count", {
    description: "Counts the words of a text, or of the page at a URL.",
    input: z.object({ text: z.string().optional(), url: z.url().optional() }),
    output: z.object({ words: z.number() })
  }),
  async ({ text, url }, { signal }) => {
    if (text === undefined && url === undefined) throw new VisibleError("Pass a text or a url")
    const counted = text ?? await textOf(url!, signal)
    return { words: counted.match(/\S+/g)?.length ?? 0 }
  }
)
// #endregion
