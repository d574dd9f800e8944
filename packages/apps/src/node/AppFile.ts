/**
 * Reads the HTML of a page from a file, in Node.
 *
 * @example
 * const page = App.make("ui://shop/sales", { html: AppFile.read(new URL("./sales.html", import.meta.url)) })
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { readFile, stat } from "node:fs/promises"

/** The most bytes of a file. A larger one is not read. */
const maxFileBytes = 4_194_304

/** The file cannot be read, or has more than 4,194,304 bytes. The reader of the page receives `-32603` with the message. */
export class PageUnavailable extends PrintableError.tagged("PageUnavailable")<{
  /** The error of the file system. The message does not contain its path. */
  readonly cause?: unknown
}> {}

const nameOf = (file: string | URL): string => quote(String(file).replace(/^.*[/\\]/, ""))

/**
 * Reads a file each time that the effect runs, so that a page that was built again is served without a restart. The
 * message of a failure names the file, without its folder.
 *
 * @example
 * const html = AppFile.read("dist/sales.html")
 */
export const read = (file: string | URL): Effect.Effect<string, PageUnavailable> =>
  Effect.tryPromise({
    try: async (signal) => {
      const found = await stat(file)
      // A device or a pipe could be endless.
      if (!found.isFile()) throw new Error("it is not a file")
      const { size } = found
      return size > maxFileBytes ? size : await readFile(file, { encoding: "utf8", signal })
    },
    catch: (cause) => new PageUnavailable({ message: `The page ${nameOf(file)} cannot be read`, cause })
  }).pipe(Effect.flatMap((text) =>
    typeof text === "string"
      ? Effect.succeed(text)
      : Effect.fail(
        new PageUnavailable({
          message: `The page ${nameOf(file)} has ${text} bytes, more than ${maxFileBytes}`
        })
      )
  ))
