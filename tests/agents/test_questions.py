"""Thirty questions over the demo data. The agent that answers them knows only what the tools say."""

import pytest

from collections_app import demo_documents
from tests.agents.agent_calls import Agent
from tests.agents.scripted_agent import ScriptedAgent
from tests.collections_app.test_demo import process_demo_documents

pytestmark = pytest.mark.django_db

QUESTIONS = {
    "Which tables can I use?": {"company", "service", "sys_group", "task", "user"},
    "What may I do with tasks?": ["read", "create", "update"],
    "What may I do with users?": ["read"],
    "Which values can the priority of a task have?": ["Critical", "High", "Moderate", "Low"],
    "Which values can the approval state of a task have?": ["Not requested", "Requested", "Approved", "Rejected"],
    "Which table does the parent of a task refer to?": "task",
    "Which columns of a service are mandatory?": {"name"},
    "How many tasks are there?": 20,
    "How many tasks are active?": 18,
    "How many tasks are not active?": 2,
    "How many tasks have the priority critical?": 2,
    "How many tasks have the state on hold?": 3,
    "How many active tasks have the service “Email”?": 5,
    "How many tasks are without an assigned user?": 2,
    "How many tasks have the caller “demo.agent”?": 5,
    "How many tasks were opened in the last 11 days?": 17,
    "How many different callers do tasks have?": 2,
    "How many users are there?": 2,
    "Which service has the most tasks?": "Email",
    "Which priority has the most tasks?": "Low",
    "Which tasks have the priority critical?": {"Switch in room 114 is down", "Email to a customer bounces"},
    "Which tasks have the state resolved?": {"Toner for the color printer", "Spam filter is too strict"},
    "Which tasks mention “SPF”?": {"Email to a customer bounces"},
    "Which task was opened first?": {"Forward a former colleague's mail"},
    "What is the priority of the task “Monitor flickers”?": "Moderate",
    "What is the description of the task “Mailbox is full”?": "I can still receive, but not send.",
    "Who is the caller of the task “Slow connection to a branch”?": "demo.agent",
    "What is the last name of the user “demo.user”?": "User",
}
DOCUMENTS = {
    "How do I take a backup and restore it?": "backup.md",
    "How do I set up a Keycloak connection?": "connect-a-provider.md",
}


def test_scripted_agent_answers_thirty_questions(agent: Agent):
    demo_documents.load_demo_documents()
    process_demo_documents()
    scripted_agent = ScriptedAgent(agent)

    answers = {question: scripted_agent.ask(question) for question in QUESTIONS}
    documents = {question: scripted_agent.ask(question) for question in DOCUMENTS}

    assert answers == QUESTIONS and len(QUESTIONS) + len(DOCUMENTS) == 30
    assert [name for question, name in DOCUMENTS.items() if name not in documents[question]] == []


@pytest.mark.usefixtures("demo_data")
def test_questions_of_another_person_have_other_answers(requester: object):
    scripted_agent = ScriptedAgent(Agent(requester, mcp_writes=True))  # type: ignore[arg-type]

    assert scripted_agent.ask("How many tasks are there?") == 15
    assert scripted_agent.ask("What may I do with tasks?") == ["read", "create"]
