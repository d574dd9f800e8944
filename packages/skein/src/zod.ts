/**
 * The schema library [Zod](https://zod.dev), complete, for servers that start sooner: `skein/zod` is one file, and its
 * compiled code is stored between starts. Its schemas are those of the package `zod`, which works in its place.
 *
 * @example
 * import { AsyncServer } from "skein"
 * import * as z from "skein/zod"
 *
 * new AsyncServer({ name: "shop", version: "1.0.0" })
 *   .tool("price", { input: z.object({ tea: z.string() }) }, async ({ tea }) => priceOf(tea))
 *   .runStdio()
 */
export * from "zod"
