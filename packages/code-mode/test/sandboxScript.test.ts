import { describe, expect, it } from "@effect/vitest"
import { brotliDecompressSync } from "node:zlib"
import { bundled, engine } from "../../../scripts/sandboxScript.ts"
import { compressedEngine, compressedScript } from "../src/internal/sandbox/sandboxScript.ts"

const decompressed = (text: string) => brotliDecompressSync(Buffer.from(text, "base64"))

describe("the script of the sandbox", () => {
  it("is that of its sources: `npm run sandbox-script` writes it", async () => {
    expect(decompressed(compressedScript).toString() === await bundled()).toBe(true)
    expect(decompressed(compressedEngine).equals(await engine)).toBe(true)
  })
})
