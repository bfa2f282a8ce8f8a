"""The dashboard's entry for Streamlit: ``streamlit run`` executes this file, ``crashpath dashboard`` starts that."""

from crashpath.dashboard.page_frame import navigation

navigation()
