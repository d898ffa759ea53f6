"""Queries on the table task with every kind of value."""

TASK_QUERIES = [
    "active=true^stateIN1,2^ORpriority=1^assigned_userDYNAMICme^opened_atRELATIVELT@day@ago@7^NQpriorityBETWEEN1@3",
    "(active=1^NQ(state=2^ORstate=3)^short_descriptionLIKE{x^y)})^ORnumberISEMPTY^ORDERBYDESCnumber^ORDERBYstate",
    "opened_atONlast week@javascript:gs.beginningOfLastWeek()@javascript:gs.endOfLastWeek()^due_dateNOTON2024-05-19",
    "opened_atONMay@2024-05-01@2024-05-31^sys_created_atONx@javascript:gs.now()@2024-05-31",
    "opened_at>2024-05-19^opened_at<=2024-05-19T15:30:00+03:00^due_date<javascript:gs.beginningOfToday()",
    "opened_atRELATIVEGE@hour@ahead@3^opened_atRELATIVEEE@month@ago@1^due_dateRELATIVEGT@day@ahead@0",
    "closed_atMORETHANopened_at@day@after@5^opened_atMONTH_IS5^opened_atYEAR_IS2024^opened_atDAY_OF_WEEK_IS07",
    "opened_bySAMEAScaller^opened_atGT_FIELDsys_created_at^assigned_user=javascript:gs.getUserID()",
    "assigned_userIN12345,javascript:gs.getUserID()^caller.company.nameSTARTSWITHA^assigned_userISNOT_DYNAMICme",
    "followers_listCONTAINS_DYNAMICme^followers_listHAS1,2^sys_idAREprinter fire^sys_idINSTANCEOFtask",
    "state=9^stateINx,1^priorityANYTHING^opened_atBETWEEN2024-01-01@javascript:gs.now()^active!=False",
    "opened_at=javascript:gs.daysAgo(-3)^assignment_groupDYNAMICme^stateLIKEx^numberIN{STANCEOF}^number={{a}",
]
