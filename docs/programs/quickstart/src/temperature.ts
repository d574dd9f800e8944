// #region tool
import { tool, VisibleError } from "skein"
import { z } from "zod"

const api = process.env["WEATHER_URL"] ?? "https://api.open-meteo.com/v1/forecast"
const Weather = z.object({ current: z.object({ temperature_2m: z.number() }) })

export const temperature = tool(
  "temperature",
  {
    description: "Returns the temperature at a place.",
    input: z.object({ latitude: z.number(), longitude: z.number() }),
    output: z.object({ celsius: z.number() })
  },
  async ({ latitude, longitude }, { signal }) => {
    const query = new URLSearchParams({ latitude: `${latitude}`, longitude: `${longitude}`, current: "temperature_2m" })
    const response = await fetch(`${api}?${query}`, { signal })
    // The model reads the message, and can call the tool again.
    if (!response.ok) throw new VisibleError(`The weather service answered with ${response.status}`)
    const { current } = Weather.parse(await response.json())
    return { celsius: current.temperature_2m }
  }
)
// #endregion
