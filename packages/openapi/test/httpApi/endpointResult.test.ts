import { describe, expect, it } from "@effect/vitest"
import * as Headers from "effect/http/Headers"
import { toResult } from "../../src/internal/httpApi/endpointResult.ts"

const resultOf = (text: string, hasOutputSchema: boolean) =>
  toResult("find", {
    status: 200,
    headers: Headers.fromInput({ "content-type": "application/json" }),
    body: { bytes: new TextEncoder().encode(text), isCut: false }
  }, { hasOutputSchema, credentials: "absent", now: 0 }).parts

describe("an answer with a whole number beyond 2^53", () => {
  const text = "{\"id\":1915883588174806058}"

  it("is exact in its text, without structured content", () => {
    const result = resultOf(text, false)
    expect(result).toMatchObject({ content: [{ type: "text", text }, { type: "text" }] })
    expect(result).not.toHaveProperty("structured")
  })

  it("is a failure with an output schema, which needs structured content", () => {
    expect(resultOf(text, true)).toMatchObject({
      isError: true,
      content: expect.stringContaining("its answer has the number 1915883588174806058")
    })
  })

  it("is structured content if JavaScript has the number exactly", () => {
    expect(resultOf("{\"id\":9007199254740994}", true)).toMatchObject({ structured: { id: 9007199254740994 } })
  })
})
