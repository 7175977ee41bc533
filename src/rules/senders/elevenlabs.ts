/** ElevenLabs, by its page on post-call webhooks and its library. */
import type { Sender } from "./sender.ts";

export const elevenlabs: Sender = {
  name: "elevenlabs",
  title: "ElevenLabs",
  summary: "Tells of calls of a voice agent that have ended, with their transcript.",
  verify: {
    scheme: "signature",
    header: "ElevenLabs-Signature",
    signatureKey: "v0",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: {
    event_id: "data.conversation_id",
    event_type: "type",
    agent: "data.agent_id",
    status: "data.status",
  },
  when: { event_type: "post_call_transcription" },
  personEmail: null,
  secret: { from: "sender", where: "It is shown once, when the webhook was made." },
  register: "Settings, Webhooks, Create; then Agents’ settings: Post-call webhook.",
  example: {
    json: {
      type: "post_call_transcription",
      event_timestamp: 1768478400,
      data: {
        agent_id: "xI1AVR5jrfLZ6mSjxgTS",
        conversation_id: "conv_4f9b2e7c1a8d6f3e0b5c",
        status: "done",
        user_id: "user_8a2d5f1c9e7b3a6d",
        transcript: [{ role: "agent", message: "Hello, how can I help you?", time_in_call_secs: 0 }],
        metadata: { call_duration_secs: 22, cost: 296 },
      },
    },
  },
  eventTypes: [
    { type: "post_call_transcription", meaning: "A call has ended; its transcript and analysis are there." },
    { type: "post_call_audio", meaning: "A call’s recording, in base64." },
    { type: "call_initiation_failure", meaning: "A call could not be begun." },
  ],
  pitfalls: [
    "A recording is beyond 256 KB in no time and is refused with 413: leave post-call audio off for this receiver.",
    "The event_id is the conversation, which is told of once a type: make a relay a type.",
  ],
  docs: "https://elevenlabs.io/docs/eleven-agents/workflows/post-call-webhooks",
};
